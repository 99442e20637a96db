#include "dssync/codec/codec.h"

#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(CodecTest, HasANameThatLeadsBackToIt) {
  for (const Codec codec : all_codecs()) EXPECT_EQ(codec_of(name_of(codec)), codec);
  EXPECT_EQ(codec_of("int5"), std::nullopt);
}

TEST(CodecTest, CountsBytesOfValuesAndScales) {
  EXPECT_EQ(encoded_bytes(Codec::kFloat32, 1000), 4000);
  EXPECT_EQ(encoded_bytes(Codec::kBfloat16, 1000), 2000);
  EXPECT_EQ(encoded_bytes(Codec::kInt8, 1000), 1000 + 8 * 2);  // eight blocks
  EXPECT_EQ(encoded_bytes(Codec::kInt4, 1001), 501 + 8 * 2);
  EXPECT_EQ(encoded_bytes(Codec::kInt4, 0), 0);
}

TEST(CodecTest, SharesAreThoseOfWholeBlocks) {
  EXPECT_DOUBLE_EQ(wire_share(Codec::kFloat32), 1);
  EXPECT_DOUBLE_EQ(wire_share(Codec::kBfloat16), 0.5);
  EXPECT_DOUBLE_EQ(wire_share(Codec::kInt4), 66.0 / 512);
}

TEST(CodecTest, ShorterCodecsErrMore) {
  EXPECT_EQ(error_variance(Codec::kFloat32), 0);
  EXPECT_LT(error_variance(Codec::kBfloat16), error_variance(Codec::kInt8));
  EXPECT_LT(error_variance(Codec::kInt8), error_variance(Codec::kInt4));
}

}  // namespace
}  // namespace dssync
