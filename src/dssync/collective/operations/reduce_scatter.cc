// Reduce-scatter by direct exchange: everybody sends slice i to member i, which adds up what comes in.
//
// Sent: the slices of the vector, from where they are. Received: a row for each member (its own among them), into
// `rows_`. Until the work has ended the vector's range and `rows_` must live, and nobody may write to the range.
//
// With a codec messages are sent from `sent_` and received into `received_`, and none goes to oneself: each member adds
// what the others sent, decoded, to its own values as they are, in the order of the members.
#include <ATen/ATen.h>

#include "dssync/collective/operations/accumulate.h"
#include "dssync/collective/operations/coded.h"
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

class CodedReduceScatter final : public Operation {
 public:
  CodedReduceScatter(SlicedVector slices, Coding coding) : Operation(std::move(slices)), coding_(std::move(coding)) {}

  Work start(ChannelType& channel) override {
    const std::vector<std::int64_t> sizes = slices().sizes();
    std::vector<std::int64_t> sent;
    std::vector<std::int64_t> received;
    std::int64_t bytes = 0;
    for (std::size_t member = 0; member < sizes.size(); ++member) {
      const bool is_own = member == slices().own;
      sent.push_back(is_own ? 0 : encoded_bytes(coding_.codec, sizes[member]));
      received.push_back(is_own ? 0 : encoded_bytes(coding_.codec, slices().own_size()));
      bytes += sent.back();
    }
    const at::TensorOptions options = slices().vector.options().dtype(at::kByte);
    sent_ = at::empty({bytes}, options);
    std::int64_t at = 0;
    for (std::size_t member = 0; member < sizes.size(); ++member) {
      if (member == slices().own) continue;
      encode_slice(coding_, slices(), member, slices().bounds[member], slices().bounds[member + 1],
                   sent_.narrow(0, at, sent[member]));
      at += sent[member];
    }
    row_bytes_ = encoded_bytes(coding_.codec, slices().own_size());
    received_ = at::empty({row_bytes_ * static_cast<std::int64_t>(sizes.size() - 1)}, options);
    return in_channel([&] { return channel.alltoall_base(received_, sent_, received, sent); });
  }

  void finish(int divisor) override {
    std::vector<CodedPart> parts;
    std::int64_t at = 0;
    for (std::size_t member = 0; member + 1 < slices().bounds.size(); ++member) {
      if (member == slices().own) {
        parts.push_back({{}, slices().own_slice()});
      } else {
        parts.push_back({received_.narrow(0, at, row_bytes_), {}});
        at += row_bytes_;
      }
    }
    decode_and_add(coding_.codec, parts, divisor, slices().own_slice());
    sent_ = received_ = at::Tensor();
  }

 private:
  const Coding coding_;
  std::int64_t row_bytes_ = 0;
  at::Tensor sent_;
  at::Tensor received_;
};

}  // namespace

std::unique_ptr<Operation> make_reduce_scatter(SlicedVector slices, Coding coding) {
  if (coding.codec != Codec::kFloat32) {
    return std::make_unique<CodedReduceScatter>(std::move(slices), std::move(coding));
  }
  return std::make_unique<ReduceScatter>(std::move(slices));
}

}  // namespace dssync
