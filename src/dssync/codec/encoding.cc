// The loops are written for the compiler to vectorise: fixed lengths, no branches on values. Each entry point is
// compiled for several instruction sets, and the best one that the CPU has is taken (no flag of the build says which
// CPU it runs on). CMakeLists.txt forbids the compiler to fuse multiplications and additions, so that bytes are the
// same on all of them.
//
// A block is worked on as two halves of kHalf values, each pair of values with 16 bits each of one random number. A
// last block that is shorter is spread over both halves, zeros behind each.
#include "dssync/codec/encoding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define DSSYNC_X86_VERSIONS 1
#endif

namespace dssync {
namespace {

#define DSSYNC_INLINE inline __attribute__((always_inline))

constexpr int kBlock = static_cast<int>(kCodecBlock);
constexpr int kHalf = kBlock / 2;
constexpr std::int64_t kScaleBytes = 2;

using Values = std::array<float, kBlock>;
using Codes = std::array<std::uint8_t, kBlock>;
using Words = std::array<std::uint16_t, kBlock>;

constexpr std::int32_t kTooLarge = std::bit_cast<std::int32_t>(0x1p127F);
constexpr std::uint16_t kNan = 0x7FC0;
// Of scales: below, their inverse would not be finite.
constexpr float kLeastScale = 0x1p-120F;

template <Codec codec>
constexpr int kLevels = codec == Codec::kInt8 ? 127 : 7;

// Where block `block` begins in a message, and its codes.
template <Codec codec>
constexpr std::int64_t block_at(std::int64_t block) {
  return block * (codec == Codec::kBfloat16 ? 2 * kBlock : kScaleBytes + (codec == Codec::kInt8 ? kBlock : kHalf));
}

template <Codec codec>
constexpr std::int64_t codes_at(std::int64_t block) {
  return block_at<codec>(block) + (codec == Codec::kBfloat16 ? 0 : kScaleBytes);
}

constexpr std::int64_t blocks_of(std::int64_t values) { return (values + kBlock - 1) / kBlock; }

// So many values of a block are in its first half.
DSSYNC_INLINE int first_half(int values) { return values == kBlock ? kHalf : (values + 1) / 2; }

// From neighbours to halves, and back.
template <typename From, typename To>
DSSYNC_INLINE void spread(const From* from, int values, To& to) {
  to.fill({});
  const int first = first_half(values);
  std::copy_n(from, first, to.begin());
  std::copy_n(from + first, values - first, to.begin() + kHalf);
}

template <typename From, typename To>
DSSYNC_INLINE void gather(const From& from, int values, To* to) {
  const int first = first_half(values);
  std::copy_n(from.begin(), first, to);
  std::copy_n(from.begin() + kHalf, values - first, to + first);
}

// Draws for all pairs of a block: each bit of the result depends on all of the key.
DSSYNC_INLINE std::uint32_t draw(std::uint32_t key, int pair) {
  std::uint32_t x = key + static_cast<std::uint32_t>(pair);
  x ^= x >> 16;
  x *= 0x7FEB352DU;
  x ^= x >> 15;
  x *= 0x846CA68BU;
  return x ^ (x >> 16);
}

DSSYNC_INLINE std::uint32_t key_of(std::uint64_t seed, std::int64_t block) {
  return static_cast<std::uint32_t>(mix_seeds(seed, static_cast<std::uint64_t>(block)));
}

DSSYNC_INLINE float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Of the block's largest magnitude.
template <int levels>
DSSYNC_INLINE std::uint16_t scale_of(const float* values) {
  std::int32_t most = 0;
  for (int i = 0; i < kBlock; ++i) most = std::max(most, std::bit_cast<std::int32_t>(values[i]) & 0x7FFFFFFF);
  if (most >= kTooLarge) return kNan;
  if (most == 0) return 0;
  const float scale = std::max(std::bit_cast<float>(most) / levels, kLeastScale);
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(scale) + 0xFFFF) >> 16);  // rounded up
}

// levels + 1 + the code. Adding it first makes everything positive, so that cutting off is rounding down.
template <int levels>
DSSYNC_INLINE std::int32_t round(float value, float inverse, std::uint32_t random16) {
  const float u = static_cast<float>(static_cast<std::int32_t>(random16)) * 0x1p-16F;
  const auto code = static_cast<std::int32_t>(value * inverse + (u + static_cast<float>(levels + 1)));
  return std::min(std::max(code, 1), 2 * levels + 1);
}

template <Codec codec>
DSSYNC_INLINE void encode_codes(const float* values, float inverse, std::uint32_t key, Codes& codes) {
  constexpr int kMost = kLevels<codec>;
  for (int i = 0; i < kHalf; ++i) {
    const std::uint32_t random = draw(key, i);
    const std::int32_t low = round<kMost>(values[i], inverse, random & 0xFFFF);
    const std::int32_t high = round<kMost>(values[i + kHalf], inverse, random >> 16);
    if constexpr (codec == Codec::kInt4) {
      codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(low | (high << 4));
    } else {
      codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(low ^ 0x80);
      codes[static_cast<std::size_t>(i + kHalf)] = static_cast<std::uint8_t>(high ^ 0x80);
    }
  }
}

template <Codec codec>
DSSYNC_INLINE void encode_block(const float* values, std::uint32_t key, std::byte* scale_at, Codes& codes) {
  const std::uint16_t bits = scale_of<kLevels<codec>>(values);
  std::memcpy(scale_at, &bits, sizeof bits);
  if (bits == 0 || bits == kNan) {
    codes.fill(codec == Codec::kInt4 ? 0x88 : 0);
  } else {
    encode_codes<codec>(values, 1 / from_bfloat16(bits), key, codes);
  }
}

DSSYNC_INLINE std::uint16_t to_bfloat16(float value, std::uint32_t random16) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_finite = (bits & 0x7F800000U) != 0x7F800000U;
  const std::uint32_t whole = (bits & 0x007FFFFFU) != 0 ? kNan : bits >> 16;
  return static_cast<std::uint16_t>(is_finite ? (bits + random16) >> 16 : whole);
}

DSSYNC_INLINE void encode_words(const float* values, std::uint32_t key, Words& words) {
  for (int i = 0; i < kHalf; ++i) {
    const std::uint32_t random = draw(key, i);
    words[static_cast<std::size_t>(i)] = to_bfloat16(values[i], random & 0xFFFF);
    words[static_cast<std::size_t>(i + kHalf)] = to_bfloat16(values[i + kHalf], random >> 16);
  }
}

template <Codec codec>
DSSYNC_INLINE void encode_all(const float* values, std::int64_t size, std::uint64_t seed, std::byte* bytes,
                              std::int64_t first_block) {
  const std::int64_t blocks = blocks_of(size);
  Values short_block;
  Words words;
  Codes codes;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const int here = static_cast<int>(std::min<std::int64_t>(kBlock, size - block * kBlock));
    const float* from = values + block * kBlock;
    if (here < kBlock) {
      spread(from, here, short_block);
      from = short_block.data();
    }
    auto* const to = bytes + codes_at<codec>(block);
    if constexpr (codec == Codec::kBfloat16) {
      encode_words(from, key_of(seed, first_block + block), words);
      if (here == kBlock) {
        std::memcpy(to, words.data(), sizeof words);
      } else {
        Words joined;
        gather(words, here, joined.data());
        std::memcpy(to, joined.data(), 2 * static_cast<std::size_t>(here));
      }
    } else {
      encode_block<codec>(from, key_of(seed, first_block + block), bytes + block_at<codec>(block), codes);
      if constexpr (codec == Codec::kInt4) {
        std::memcpy(to, codes.data(), static_cast<std::size_t>(first_half(here)));
      } else {
        gather(codes, here, reinterpret_cast<std::uint8_t*>(to));
      }
    }
  }
}

// How a part becomes part of the sum.
enum class Into { kFirst, kFurther };

template <Into into>
DSSYNC_INLINE void take(float value, float& sum) {
  if constexpr (into == Into::kFirst) {
    sum = value;
  } else {
    sum += value;
  }
}

// Decodes a block of a message, in halves.
template <Codec codec, Into into>
DSSYNC_INLINE void add_block(const std::byte* bytes, std::int64_t block, int here, float* sum) {
  const std::byte* const from = bytes + codes_at<codec>(block);
  if constexpr (codec == Codec::kBfloat16) {
    Words words;
    Words joined;
    std::memcpy(words.data(), from, 2 * static_cast<std::size_t>(here));
    if (here < kBlock) {
      spread(words.data(), here, joined);
      words = joined;
    }
    for (int i = 0; i < kBlock; ++i) take<into>(from_bfloat16(words[static_cast<std::size_t>(i)]), sum[i]);
  } else {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + block_at<codec>(block), sizeof bits);
    const float scale = from_bfloat16(bits);
    Codes codes;
    if constexpr (codec == Codec::kInt4) {
      if (here == kBlock) {
        std::memcpy(codes.data(), from, kHalf);
      } else {
        codes.fill(0x88);
        std::memcpy(codes.data(), from, static_cast<std::size_t>(first_half(here)));
      }
      for (int i = 0; i < kHalf; ++i) {
        const std::int32_t code = codes[static_cast<std::size_t>(i)];
        take<into>(static_cast<float>((code & 15) - 8) * scale, sum[i]);
        take<into>(static_cast<float>((code >> 4) - 8) * scale, sum[i + kHalf]);
      }
    } else {
      if (here == kBlock) {
        std::memcpy(codes.data(), from, kBlock);
      } else {
        spread(reinterpret_cast<const std::uint8_t*>(from), here, codes);
      }
      for (int i = 0; i < kBlock; ++i) {
        const auto code = static_cast<std::int8_t>(codes[static_cast<std::size_t>(i)]);
        take<into>(static_cast<float>(code) * scale, sum[i]);
      }
    }
  }
}

template <Into into>
DSSYNC_INLINE void add_values(const float* values, int here, float* sum) {
  Values short_block;
  if (here < kBlock) {
    spread(values, here, short_block);
    values = short_block.data();
  }
  for (int i = 0; i < kBlock; ++i) take<into>(values[i], sum[i]);
}

template <Codec codec, Into into>
DSSYNC_INLINE void add_part(const Part& part, std::int64_t block, int here, float* sum) {
  if (part.message != nullptr) {
    add_block<codec, into>(part.message, block, here, sum);
  } else {
    add_values<into>(part.values + block * kBlock, here, sum);
  }
}

template <Codec codec>
DSSYNC_INLINE void decode_all(std::span<const Part> parts, float divisor, float* values, std::int64_t size) {
  const std::int64_t blocks = blocks_of(size);
  alignas(64) Values sum;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const int here = static_cast<int>(std::min<std::int64_t>(kBlock, size - block * kBlock));
    add_part<codec, Into::kFirst>(parts.front(), block, here, sum.data());
    for (const Part& part : parts.subspan(1)) {
      add_part<codec, Into::kFurther>(part, block, here, sum.data());
    }
    if (divisor != 1) {
      for (float& value : sum) value /= divisor;
    }
    if (here == kBlock) {
      std::memcpy(values + block * kBlock, sum.data(), sizeof sum);
    } else {
      gather(sum, here, values + block * kBlock);
    }
  }
}

DSSYNC_INLINE void encode_any(Codec codec, std::span<const float> values, std::uint64_t seed, std::byte* bytes,
                              std::int64_t first_block) {
  const auto size = static_cast<std::int64_t>(values.size());
  switch (codec) {
    case Codec::kFloat32:
      std::copy_n(std::as_bytes(values).begin(), values.size_bytes(), bytes);
      break;
    case Codec::kBfloat16:
      return encode_all<Codec::kBfloat16>(values.data(), size, seed, bytes, first_block);
    case Codec::kInt8:
      return encode_all<Codec::kInt8>(values.data(), size, seed, bytes, first_block);
    case Codec::kInt4:
      return encode_all<Codec::kInt4>(values.data(), size, seed, bytes, first_block);
  }
}

// Messages of float32 are values that may be anywhere in memory.
void add_float32(std::span<const Part> parts, float divisor, std::span<float> sum) {
  const auto value_of = [](const Part& part, std::size_t index) {
    if (part.message == nullptr) return part.values[index];
    float value = 0;
    std::memcpy(&value, part.message + index * sizeof value, sizeof value);
    return value;
  };
  for (std::size_t index = 0; index < sum.size(); ++index) {
    float total = value_of(parts.front(), index);
    for (const Part& part : parts.subspan(1)) total += value_of(part, index);
    sum[index] = total / divisor;
  }
}

DSSYNC_INLINE void decode_any(Codec codec, std::span<const Part> parts, float divisor, std::span<float> sum) {
  const auto size = static_cast<std::int64_t>(sum.size());
  switch (codec) {
    case Codec::kFloat32:
      return add_float32(parts, divisor, sum);
    case Codec::kBfloat16:
      return decode_all<Codec::kBfloat16>(parts, divisor, sum.data(), size);
    case Codec::kInt8:
      return decode_all<Codec::kInt8>(parts, divisor, sum.data(), size);
    case Codec::kInt4:
      return decode_all<Codec::kInt4>(parts, divisor, sum.data(), size);
  }
}

#define DSSYNC_VERSION(name, attributes)                                                                          \
  attributes void encode_##name(Codec codec, std::span<const float> values, std::uint64_t seed, std::byte* bytes, \
                                std::int64_t first_block) {                                                       \
    encode_any(codec, values, seed, bytes, first_block);                                                          \
  }                                                                                                               \
  attributes void decode_##name(Codec codec, std::span<const Part> parts, float divisor, std::span<float> sum) {  \
    decode_any(codec, parts, divisor, sum);                                                                       \
  }

DSSYNC_VERSION(plain, )
#if DSSYNC_X86_VERSIONS
DSSYNC_VERSION(avx2, __attribute__((target("avx2"))))
DSSYNC_VERSION(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))
#endif

const EncodingVersion& version() {
  static const EncodingVersion kBest = encoding_versions().back();
  return kBest;
}

}  // namespace

std::vector<EncodingVersion> encoding_versions() {
  std::vector<EncodingVersion> versions = {{"plain", encode_plain, decode_plain}};
#if DSSYNC_X86_VERSIONS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) versions.push_back({"avx2", encode_avx2, decode_avx2});
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    versions.push_back({"avx512", encode_avx512, decode_avx512});
  }
#endif
  return versions;
}

void encode(Codec codec, std::span<const float> values, std::uint64_t seed, std::byte* bytes,
            std::int64_t first_block) {
  version().encode(codec, values, seed, bytes, first_block);
}

void decode(Codec codec, const std::byte* bytes, std::span<float> values) {
  if (codec == Codec::kFloat32) {
    if (!values.empty()) std::memcpy(values.data(), bytes, values.size_bytes());
    return;
  }
  const Part part{bytes, nullptr};
  version().decode(codec, {&part, 1}, 1, values);
}

void decode_and_add(Codec codec, std::span<const Part> parts, float divisor, std::span<float> sum) {
  version().decode(codec, parts, divisor, sum);
}

std::uint64_t mix_seeds(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a + 0x9E3779B97F4A7C15U * (b + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

}  // namespace dssync
