// Vectors as a codec's bytes: by the kernels of codec/encoding.h on a CPU, by operations of PyTorch on other devices,
// with the same bytes. Thread-safe for different tensors.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/codec/codec.h"

namespace dssync {

// Of two codecs the more precise one; for vectors of other types than float32 always kFloat32, which leaves them as
// they are.
Codec codec_for(const at::Tensor& vector, Codec asked, Codec shortest);

// Writes the message of `values` (contiguous, one dimension, float32) to `bytes`, of just its length. The first block
// has number `first_block`.
void encode(Codec codec, const at::Tensor& values, std::uint64_t seed, const at::Tensor& bytes,
            std::int64_t first_block = 0);

// The other way.
void decode(Codec codec, const at::Tensor& bytes, const at::Tensor& values);

// One of the parts of a sum: a message, or values as they are.
struct CodedPart {
  at::Tensor message{};
  at::Tensor values{};  // where there is no message
};

// The sum of the parts in their order, divided. `sum` may be the values of a part.
void decode_and_add(Codec codec, const std::vector<CodedPart>& parts, int divisor, const at::Tensor& sum);

// What encode() and decode() do on devices other than CPUs; here for tests.
void encode_by_operations(Codec codec, const at::Tensor& values, std::uint64_t seed, const at::Tensor& bytes,
                          std::int64_t first_block);
void decode_by_operations(Codec codec, const at::Tensor& bytes, const at::Tensor& values);

}  // namespace dssync
