#include "dssync/collective/operations/coded_result.h"

#include <utility>

#include <ATen/ATen.h>

#include "dssync/collective/operations/coded.h"

namespace dssync {

CodedResult::CodedResult(const at::Tensor& vector, Codec codec, std::uint64_t seed, at::Tensor lost)
    : vector_(vector),
      codec_(codec),
      seed_(seed),
      lost_(std::move(lost)),
      bytes_(at::empty({encoded_bytes(codec, vector.numel())}, vector.options().dtype(at::kByte))) {}

void CodedResult::encode_sums(const SlicedVector& slices, int group_size, int holders) {
  const std::int64_t begin = slices.bounds[slices.own];
  const std::int64_t size = slices.own_size();
  const std::int64_t from = encoded_bytes(codec_, begin);
  const at::Tensor message = bytes_.narrow(0, from, encoded_bytes(codec_, begin + size) - from);
  const at::Tensor values = vector_.narrow(0, begin, size);
  encode(codec_, values, seed_, message, begin / kCodecBlock);
  if (!lost_.defined()) return;
  const at::Tensor arrived = at::empty_like(values);
  decode(codec_, message, arrived);
  lost_.narrow(0, begin, size).add_(values - arrived, static_cast<double>(group_size) / holders);
}

SlicedVector CodedResult::slices_of_bytes(const SlicedVector& slices) const {
  SlicedVector result{bytes_, {}, slices.own};
  for (const std::int64_t bound : slices.bounds) result.bounds.push_back(encoded_bytes(codec_, bound));
  return result;
}

void CodedResult::decode_all() const { decode(codec_, bytes_, vector_); }

}  // namespace dssync
