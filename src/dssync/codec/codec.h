// How the values of a stage travel between workers: names, bytes on the wire, and the error that a codec adds. Pure;
// thread-safe.
//
// `bfloat16` rounds each value. `int8` and `int4` cut values into blocks of kCodecBlock with one scale each, and round
// to multiples of it. All of them round stochastically. encoding.h says what the bytes are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace dssync {

enum class Codec {
  kFloat32,  // as the vector holds them
  kBfloat16,
  kInt8,
  kInt4,
};

inline constexpr std::int64_t kCodecBlock = 128;  // values that share a scale

// All of them, from the most precise to the shortest.
std::span<const Codec> all_codecs();

// "float32", "bfloat16", "int8", "int4".
const char* name_of(Codec codec);
// Nothing for a name that no codec has.
std::optional<Codec> codec_of(std::string_view name);

// Bytes on the wire of so many float32 values that travel as one message.
std::int64_t encoded_bytes(Codec codec, std::int64_t values);

// Bytes on the wire for each byte of a long float32 vector.
double wire_share(Codec codec);

// The variance of the error that one passage adds to a value, for values with mean 0 and variance 1 that are normally
// distributed.
double error_variance(Codec codec);

}  // namespace dssync
