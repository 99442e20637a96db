#include "dssync/codec/codec.h"

#include <array>

namespace dssync {
namespace {

constexpr std::int64_t kScaleBytes = 2;

constexpr int bits_of(Codec codec) {
  switch (codec) {
    case Codec::kFloat32:
      return 32;
    case Codec::kBfloat16:
      return 16;
    case Codec::kInt8:
      return 8;
    case Codec::kInt4:
      return 4;
  }
  return 32;
}

constexpr bool has_blocks(Codec codec) { return codec == Codec::kInt8 || codec == Codec::kInt4; }

constexpr std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of kCodecBlock normal values: the expected square of the largest, with its scale rounded up to bfloat16.
constexpr double kLargestSquare = 8.19;

// Of normal values: the expected square of the power of two at or below them.
constexpr double kSquareOfPower = 0.543;

}  // namespace

std::span<const Codec> all_codecs() {
  static constexpr std::array kAll{Codec::kFloat32, Codec::kBfloat16, Codec::kInt8, Codec::kInt4};
  return kAll;
}

const char* name_of(Codec codec) {
  switch (codec) {
    case Codec::kFloat32:
      return "float32";
    case Codec::kBfloat16:
      return "bfloat16";
    case Codec::kInt8:
      return "int8";
    case Codec::kInt4:
      return "int4";
  }
  return "";
}

std::optional<Codec> codec_of(std::string_view name) {
  for (const Codec codec : all_codecs()) {
    if (name == name_of(codec)) return codec;
  }
  return std::nullopt;
}

std::int64_t encoded_bytes(Codec codec, std::int64_t values) {
  const std::int64_t scales = has_blocks(codec) ? divided_up(values, kCodecBlock) * kScaleBytes : 0;
  return divided_up(values * bits_of(codec), 8) + scales;
}

double wire_share(Codec codec) {
  return static_cast<double>(encoded_bytes(codec, kCodecBlock)) / static_cast<double>(4 * kCodecBlock);
}

double error_variance(Codec codec) {
  if (codec == Codec::kFloat32) return 0;
  // Stochastic rounding to multiples of d errs by d^2 / 6 in the mean. Of bfloat16 d is 2^-7 times the power of two
  // below the value; of the others the block's largest value over the number of levels.
  if (codec == Codec::kBfloat16) return kSquareOfPower / (6.0 * 128 * 128);
  const double levels = (1 << (bits_of(codec) - 1)) - 1;
  return kLargestSquare / (6 * levels * levels);
}

}  // namespace dssync
