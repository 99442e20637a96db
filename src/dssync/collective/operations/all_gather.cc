// All-gather: everybody sends its slice to all others, who receive it straight into its place.
//
// Sent: a copy of the own slice for each member (its own place among them), from `copies_`. Received: all slices, into
// the vector. Until the work has ended the vector's range and `copies_` must live, and nobody may touch the range. A
// result that was encoded when it was complete is a vector of bytes: it is handed on as it is (coded_result.h).
#include <ATen/ATen.h>

#include "dssync/collective/operations/operation.h"

namespace dssync {
namespace {

class AllGather final : public Operation {
 public:
  using Operation::Operation;

  Work start(ChannelType& channel) override {
    std::vector<std::int64_t> received = slices().sizes();
    std::vector<std::int64_t> sent(received.size(), slices().own_size());
    at::Tensor range = slices().range();
    copies_ = slices().own_slice().repeat({static_cast<std::int64_t>(received.size())});
    return in_channel([&] { return channel.alltoall_base(range, copies_, received, sent); });
  }

  // It completes no sums: what is gathered has been divided before.
  void finish(int /*divisor*/) override { copies_ = at::Tensor(); }

 private:
  at::Tensor copies_;
};

}  // namespace

std::unique_ptr<Operation> make_all_gather(SlicedVector slices) {
  return std::make_unique<AllGather>(std::move(slices));
}

}  // namespace dssync
