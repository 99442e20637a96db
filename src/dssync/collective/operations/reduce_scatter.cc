// Reduce-scatter by direct exchange: everybody sends slice i to member i, which adds up what comes in.
//
// Sent: the slices of the vector, from where they are. Received: a row for each member (its own among them), into
// `rows_`. Until the work has ended the vector's range and `rows_` must live, and nobody may write to the range.
#include <ATen/ATen.h>

#include "dssync/collective/operations/accumulate.h"
#include "dssync/collective/operations/operation.h"

namespace dssync {
namespace {

class ReduceScatter final : public Operation {
 public:
  using Operation::Operation;

  Work start(ChannelType& channel) override {
    std::vector<std::int64_t> sent = slices().sizes();
    std::vector<std::int64_t> received(sent.size(), slices().own_size());
    at::Tensor range = slices().range();
    rows_ = at::empty({static_cast<std::int64_t>(sent.size()), slices().own_size()}, range.options());
    at::Tensor output = rows_.view({-1});
    return in_channel([&] { return channel.alltoall_base(output, range, received, sent); });
  }

  void finish(int divisor) override {
    if (slices().own_size() > 0) accumulate(slices().own_slice(), rows_, Rows::kAllParts, divisor);
    rows_ = at::Tensor();
  }

 private:
  at::Tensor rows_;
};

}  // namespace

std::unique_ptr<Operation> make_reduce_scatter(SlicedVector slices) {
  return std::make_unique<ReduceScatter>(std::move(slices));
}

}  // namespace dssync
