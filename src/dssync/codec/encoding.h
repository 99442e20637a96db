// Turns float32 values into the bytes of a codec and back, on a CPU. Pure; thread-safe. On other devices the same is
// done by operations of PyTorch (collective/operations/coded.h).
//
// A message is one block after the other, of kCodecBlock values each, the last one of as many as are left:
//   bfloat16      the upper 16 bits of each float32
//   int8, int4    a scale in bfloat16, then a code for each value, which stands for that many times the scale
// int8 has a byte for each code. In int4, byte j of a block of m values has 8 + the code of value j in its lower half,
// 8 + the code of value j + (m + 1) / 2 in its upper half. So what begins at a multiple of kCodecBlock values begins at
// encoded_bytes() of as many, and whole blocks can be handed on without decoding them.
//
// All rounding is stochastic, and in the mean right. What is drawn depends on the seed, the block's number and the
// value's place alone: the same seed and values give the same bytes on every CPU. Decoding is exact: a code times a
// scale fits a float32.
//
// A block with a NaN, or with a value of 2^127 and more, has a NaN as its scale: all its values come out as NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dssync/codec/codec.h"

namespace dssync {

// Writes encoded_bytes(codec, values.size()) bytes. The first block has number `first_block`.
void encode(Codec codec, std::span<const float> values, std::uint64_t seed, std::byte* bytes,
            std::int64_t first_block = 0);

// Reads as many. Any bytes are a message.
void decode(Codec codec, const std::byte* bytes, std::span<float> values);

// One of the parts of a sum: a message, or values as they are.
struct Part {
  const std::byte* message = nullptr;
  const float* values = nullptr;  // where there is no message
};

// The sum of the parts, in their order, divided. In one pass: block by block, each part of it while the sum is in the
// cache. `sum` may be the values of a part. Same bits on every CPU.
void decode_and_add(Codec codec, std::span<const Part> parts, float divisor, std::span<float> sum);

// The functions above as they were compiled for one instruction set. The last one is in use.
struct EncodingVersion {
  const char* name;
  void (*encode)(Codec codec, std::span<const float> values, std::uint64_t seed, std::byte* bytes,
                 std::int64_t first_block);
  void (*decode)(Codec codec, std::span<const Part> parts, float divisor, std::span<float> sum);
};

// Those that this CPU can run.
std::vector<EncodingVersion> encoding_versions();

// A seed of several numbers. Seeds that differ in any of them have nothing in common.
std::uint64_t mix_seeds(std::uint64_t a, std::uint64_t b);

}  // namespace dssync
