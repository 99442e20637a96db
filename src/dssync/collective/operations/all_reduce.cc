// All-reduce: all members end with the sum of the one slice.
//
// Two exchange all that they have, unless it is long: as many bytes as a ring of two sends, in one step instead of two.
// Sent: the slice, from where it is. Received: the other's, into `incoming_`. Until the work has ended the slice and
// `incoming_` must live, and nobody may write to the slice.
//
// Long slices, and three members and more, use c10d's all-reduce, which sends parts of the slice and adds up in place:
// the slice must live, and nobody may touch it, until the work has ended. Where what is sent is not what is added up,
// c10d cannot do this: whoever lowers the average has to ask for a reduce-scatter and an all-gather instead.
//
// A pair with a codec exchanges messages whatever the length. Both decode both, their own as well, so that they have
// the same bits.
#include <stdexcept>

#include <ATen/ATen.h>

#include "dssync/collective/operations/accumulate.h"
#include "dssync/collective/operations/coded.h"
#include "dssync/collective/operations/operation.h"
#include "dssync/collective/tuning.h"

namespace dssync {
namespace {

class PairExchange final : public Operation {
 public:
  PairExchange(SlicedVector slices, bool is_first) : Operation(std::move(slices)), is_first_(is_first) {}

  Work start(ChannelType& channel) override {
    at::Tensor range = slices().range();
    const std::int64_t size = range.numel();
    std::vector<std::int64_t> sent =
        is_first_ ? std::vector<std::int64_t>{0, size} : std::vector{size, std::int64_t{0}};
    std::vector<std::int64_t> received = sent;
    incoming_ = at::empty_like(range);
    return in_channel([&] { return channel.alltoall_base(incoming_, range, received, sent); });
  }

  void finish(int divisor) override {
    accumulate(slices().range(), incoming_.unsqueeze(0), Rows::kOtherParts, divisor);
    incoming_ = at::Tensor();
  }

 private:
  const bool is_first_;
  at::Tensor incoming_;
};

class CodedPairExchange final : public Operation {
 public:
  CodedPairExchange(SlicedVector slices, Coding coding, bool is_first)
      : Operation(std::move(slices)), coding_(std::move(coding)), is_first_(is_first) {}

  Work start(ChannelType& channel) override {
    const std::int64_t bytes = encoded_bytes(coding_.codec, slices().range().numel());
    std::vector<std::int64_t> sent =
        is_first_ ? std::vector<std::int64_t>{0, bytes} : std::vector{bytes, std::int64_t{0}};
    std::vector<std::int64_t> received = sent;
    own_ = at::empty({bytes}, slices().vector.options().dtype(at::kByte));
    other_ = at::empty_like(own_);
    encode_slice(coding_, slices(), 0, slices().bounds.front(), slices().bounds.back(), own_);
    return in_channel([&] { return channel.alltoall_base(other_, own_, received, sent); });
  }

  void finish(int divisor) override {
    const at::Tensor& first = is_first_ ? own_ : other_;
    const at::Tensor& second = is_first_ ? other_ : own_;
    decode_and_add(coding_.codec, {{first, {}}, {second, {}}}, divisor, slices().range());
    own_ = other_ = at::Tensor();
  }

 private:
  const Coding coding_;
  const bool is_first_;
  at::Tensor own_;
  at::Tensor other_;
};

class AllReduce final : public Operation {
 public:
  using Operation::Operation;

  Work start(ChannelType& channel) override {
    std::vector<at::Tensor> tensors = {slices().range()};
    return in_channel([&] { return channel.allreduce(tensors); });
  }

  void finish(int divisor) override { divide(slices().range(), divisor); }
};

}  // namespace

std::unique_ptr<Operation> make_all_reduce(const Step& step, SlicedVector slices, Coding coding) {
  if (coding.codec != Codec::kFloat32) {
    if (step.members.size() != 2) throw std::logic_error("an all-reduce of more than two has no codec");
    return std::make_unique<CodedPairExchange>(std::move(slices), std::move(coding), step.index == 0);
  }
  const bool is_long = static_cast<std::int64_t>(slices.range().nbytes()) >= tuning::kLongPairBytes;
  if (step.members.size() == 2 && !is_long) {
    return std::make_unique<PairExchange>(std::move(slices), step.index == 0);
  }
  return std::make_unique<AllReduce>(std::move(slices));
}

}  // namespace dssync
