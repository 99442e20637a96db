#include "dssync/codec/encoding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dssync {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> encoded(Codec codec, const std::vector<float>& values, std::uint64_t seed = 1) {
  // A guard behind the message shows that nobody writes there.
  const auto bytes = static_cast<std::size_t>(encoded_bytes(codec, static_cast<std::int64_t>(values.size())));
  std::vector<std::byte> result(bytes + 64, std::byte{0xAB});
  encode(codec, values, seed, result.data());
  for (std::size_t i = bytes; i < result.size(); ++i) EXPECT_EQ(result[i], std::byte{0xAB});
  result.resize(bytes);
  return result;
}

std::vector<float> decoded(Codec codec, const std::vector<std::byte>& bytes, std::size_t size) {
  std::vector<float> values(size + 16, 42);
  decode(codec, bytes.data(), std::span(values).first(size));
  for (std::size_t i = size; i < values.size(); ++i) EXPECT_EQ(values[i], 42);
  values.resize(size);
  return values;
}

std::vector<float> passed(Codec codec, const std::vector<float>& values, std::uint64_t seed = 1) {
  return decoded(codec, encoded(codec, values, seed), values.size());
}

std::vector<float> normal(std::size_t size, unsigned seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0, deviation);
  std::vector<float> values(size);
  for (float& value : values) value = distribution(random);
  return values;
}

// From the largest of each block: how far apart the values are that a codec knows.
float step_at(Codec codec, const std::vector<float>& values, std::size_t index) {
  if (codec == Codec::kFloat32) return 0;
  if (codec == Codec::kBfloat16) return std::ldexp(1.0F, std::ilogb(values[index]) - 7);
  const std::size_t begin = index / kCodecBlock * kCodecBlock;
  float most = 0;
  for (std::size_t i = begin; i < std::min(begin + kCodecBlock, values.size()); ++i) {
    most = std::max(most, std::abs(values[i]));
  }
  return most / (codec == Codec::kInt8 ? 127 : 7) * 1.01F;  // the scale is rounded up
}

const std::vector<std::size_t> kSizes = {1, 2, 3, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 1009, 4096};

class EncodingTest : public ::testing::TestWithParam<Codec> {};

TEST_P(EncodingTest, KeepsEveryValueWithinAStepWhateverTheLength) {
  for (const std::size_t size : kSizes) {
    const std::vector<float> values = normal(size, static_cast<unsigned>(size));
    const std::vector<float> result = passed(GetParam(), values);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_LE(std::abs(result[i] - values[i]), step_at(GetParam(), values, i)) << size << " values, at " << i;
    }
  }
}

TEST_P(EncodingTest, IsRightInTheMean) {
  const std::vector<float> values = normal(300, 5);
  std::vector<double> sums(values.size());
  constexpr int kRepeats = 4000;
  for (int seed = 0; seed < kRepeats; ++seed) {
    const std::vector<float> result = passed(GetParam(), values, static_cast<std::uint64_t>(seed));
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += result[i];
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    // A step's deviation is at most half of it; five of these.
    const double bound = 5 * 0.5 * step_at(GetParam(), values, i) / std::sqrt(kRepeats);
    EXPECT_NEAR(sums[i] / kRepeats, values[i], bound + 1e-6) << i;
  }
}

TEST_P(EncodingTest, ErrsAsMuchAsPredicted) {
  constexpr std::size_t kSize = 1 << 20;
  const std::vector<float> values = normal(kSize, 7, 0.01F);
  const std::vector<float> result = passed(GetParam(), values);
  double sum = 0;
  for (std::size_t i = 0; i < kSize; ++i) sum += (result[i] - values[i]) * (result[i] - values[i]) / 1e-4;
  EXPECT_NEAR(sum / kSize, error_variance(GetParam()), 0.02 * error_variance(GetParam()));
}

// Otherwise errors of several workers would add up where they should cancel.
TEST_P(EncodingTest, ErrorsOfDifferentSeedsPlacesAndHalvesAreIndependent) {
  if (GetParam() == Codec::kFloat32) return;
  constexpr std::size_t kSize = 1 << 18;
  const std::vector<float> values = normal(kSize, 9);
  const auto errors = [&](std::uint64_t seed) {
    std::vector<float> result = passed(GetParam(), values, seed);
    for (std::size_t i = 0; i < kSize; ++i) result[i] -= values[i];
    return result;
  };
  const auto correlation = [&](const std::vector<float>& a, const std::vector<float>& b, std::size_t shift) {
    double product = 0;
    double square = 0;
    for (std::size_t i = 0; i + shift < kSize; ++i) {
      product += static_cast<double>(a[i]) * b[i + shift];
      square += static_cast<double>(a[i]) * a[i];
    }
    return product / square;
  };
  const std::vector<float> first = errors(1);
  const double bound = 5 / std::sqrt(static_cast<double>(kSize)) * 1.5;
  for (const std::uint64_t seed : {2U, 3U, 1U << 20}) EXPECT_LT(std::abs(correlation(first, errors(seed), 0)), bound);
  for (const std::size_t shift : {1U, 2U, 63U, 64U, 128U}) {
    EXPECT_LT(std::abs(correlation(first, first, shift)), bound) << shift;
  }
}

TEST_P(EncodingTest, HasTheSameBytesForTheSameSeed) {
  const std::vector<float> values = normal(1009, 3);
  EXPECT_EQ(encoded(GetParam(), values, 8), encoded(GetParam(), values, 8));
  if (GetParam() != Codec::kFloat32) {
    EXPECT_NE(encoded(GetParam(), values, 8), encoded(GetParam(), values, 9));
  }
}

TEST_P(EncodingTest, KeepsZeros) {
  for (const std::size_t size : kSizes) {
    EXPECT_EQ(passed(GetParam(), std::vector<float>(size)), std::vector<float>(size));
  }
  std::vector<float> sparse(512);
  sparse[3] = 1;
  const std::vector<float> result = passed(GetParam(), sparse);
  EXPECT_NEAR(result[3], 1, step_at(GetParam(), sparse, 3));
  EXPECT_EQ(std::count(result.begin(), result.end(), 0.0F), 511);
}

TEST_P(EncodingTest, NeverLosesANanOrAnInfinity) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const std::size_t size : kSizes) {
      for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
        std::vector<float> values = normal(size, 1);
        values[at] = bad;
        const std::vector<float> result = passed(GetParam(), values);
        EXPECT_FALSE(std::isfinite(result[at]));
        for (std::size_t i = 0; i < size; ++i) {
          if (i / kCodecBlock == at / kCodecBlock) continue;
          EXPECT_TRUE(std::isfinite(result[i])) << "another block";
        }
      }
    }
  }
}

TEST_P(EncodingTest, KeepsDenormalsAndTinyValuesInTheMean) {
  for (const float value : {std::numeric_limits<float>::denorm_min() * 100, 1e-39F, 1e-37F, 1e-35F}) {
    for (const float result : passed(GetParam(), std::vector<float>(300, value))) {
      EXPECT_TRUE(std::isfinite(result));
      EXPECT_GE(result, 0);
      EXPECT_LE(result, 8e-37F + 2 * value);
    }
  }
}

TEST_P(EncodingTest, KeepsLargeValuesFinite) {
  for (const float value : {1e30F, 1e38F, -1.6e38F}) {
    const std::vector<float> values(130, value);
    for (const float result : passed(GetParam(), values)) {
      EXPECT_LE(std::abs(result - value), step_at(GetParam(), values, 0));
    }
  }
  // What might become infinite in rounding comes out as no number rather than as a wrong one.
  for (const float result : passed(GetParam(), std::vector<float>(130, std::numeric_limits<float>::max()))) {
    EXPECT_FALSE(result < std::numeric_limits<float>::max());
  }
}

TEST_P(EncodingTest, AddsPartsInTheirOrderAndDivides) {
  for (const std::size_t size : kSizes) {
    const std::vector<float> own = normal(size, 1);
    const std::vector<std::byte> second = encoded(GetParam(), normal(size, 2), 2);
    const std::vector<std::byte> third = encoded(GetParam(), normal(size, 3), 3);
    const std::vector<float> b = decoded(GetParam(), second, size);
    const std::vector<float> c = decoded(GetParam(), third, size);
    std::vector<float> sum = own;  // where the first part is, too
    const std::vector<Part> parts = {{second.data(), nullptr}, {nullptr, sum.data()}, {third.data(), nullptr}};
    decode_and_add(GetParam(), parts, 3, sum);
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(sum[i], (b[i] + own[i] + c[i]) / 3) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EncodingTest,
                         ::testing::Values(Codec::kFloat32, Codec::kBfloat16, Codec::kInt8, Codec::kInt4),
                         [](const auto& codec) { return std::string(name_of(codec.param)); });

TEST(EncodingTest, LaysTheBytesOutAsPromised) {
  // The values are multiples of what the scale will be, so that nothing is left to chance: 7 * 0.5.
  const std::vector<float> values = {3.5F, -3.5F, 0, 0.5F, -1};
  const std::vector<std::byte> bytes = encoded(Codec::kInt4, values);
  ASSERT_EQ(bytes.size(), 5U);
  EXPECT_EQ(bytes[0], std::byte{0x00});  // 0.5 in bfloat16: 0x3F00
  EXPECT_EQ(bytes[1], std::byte{0x3F});
  EXPECT_EQ(bytes[2], std::byte{0x9F});  // 8 + 7, and 8 + 1 for the value three further
  EXPECT_EQ(bytes[3], std::byte{0x61});  // 8 - 7, 8 - 2
  EXPECT_EQ(bytes[4] & std::byte{0x0F}, std::byte{0x08});
}

TEST(EncodingTest, HasTheSameResultsWithEveryInstructionSet) {
  const std::vector<EncodingVersion> versions = encoding_versions();
  for (const Codec codec : all_codecs()) {
    for (const std::size_t size : kSizes) {
      std::vector<float> values = normal(size, 4);
      if (size > 200) values[150] = kNan;
      const std::vector<std::byte> expected = encoded(codec, values);
      std::vector<std::vector<float>> sums;
      for (const EncodingVersion& version : versions) {
        std::vector<std::byte> bytes(expected.size());
        version.encode(codec, values, 1, bytes.data(), 0);
        EXPECT_EQ(bytes, expected) << version.name << ", " << name_of(codec) << ", " << size;
        const std::vector<Part> parts = {{bytes.data(), nullptr}, {nullptr, values.data()}};
        version.decode(codec, parts, 3, sums.emplace_back(size));
        EXPECT_EQ(std::memcmp(sums.back().data(), sums.front().data(), 4 * size), 0) << version.name;
      }
    }
  }
}

// So a slice that is encoded by one worker can be part of what another one has encoded as a whole.
TEST(EncodingTest, HasTheSameBlocksWhereverAMessageBegins) {
  const std::vector<float> values = normal(1000, 6);
  for (const Codec codec : all_codecs()) {
    const std::vector<std::byte> whole = encoded(codec, values);
    std::vector<std::byte> part(whole.size());
    const std::int64_t begin = 3 * kCodecBlock;
    encode(codec, std::span(values).subspan(begin), 1, part.data(), 3);
    const std::size_t skipped = static_cast<std::size_t>(encoded_bytes(codec, begin));
    EXPECT_TRUE(std::equal(whole.begin() + static_cast<std::ptrdiff_t>(skipped), whole.end(), part.begin()));
  }
}

TEST(EncodingTest, TakesAnyBytesForAMessage) {
  std::mt19937 random(1);
  for (const Codec codec : all_codecs()) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(encoded_bytes(codec, 300)));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    decoded(codec, bytes, 300);
  }
}

}  // namespace
}  // namespace dssync
