// The result of an average as it is handed out where gathers have codecs: encoded once, by everyone who holds sums when
// they are complete. From then on its bytes are moved and not its values, so that all members end with the same bits,
// however many stages a value passes, and whether or not a member is part of them. Driven by one thread at a time.
//
// Members that hold the same sum encode it alike: what is drawn depends on the place in the vector, and slices begin
// with a block.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "dssync/codec/codec.h"
#include "dssync/collective/operations/operation.h"

namespace dssync {

class CodedResult {
 public:
  // Of an average of this vector. `seed`: the same on all members. `lost`: as in Coding.
  CodedResult(const at::Tensor& vector, Codec codec, std::uint64_t seed, at::Tensor lost);

  Codec codec() const { return codec_; }

  // The reduction of these slices has left complete and divided sums here: of an average over `group_size`, with
  // `holders` members that have the same sums.
  void encode_sums(const SlicedVector& slices, int group_size, int holders);

  // The slices of a gather in bytes.
  SlicedVector slices_of_bytes(const SlicedVector& slices) const;

  // All bytes are here: the vector takes over its values.
  void decode_all() const;

 private:
  const at::Tensor vector_;
  const Codec codec_;
  const std::uint64_t seed_;
  const at::Tensor lost_;
  const at::Tensor bytes_;
};

}  // namespace dssync
