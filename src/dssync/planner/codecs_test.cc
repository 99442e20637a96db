#include "dssync/planner/codecs.h"

#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

TEST(CodecsTest, TheLastLevelStandsForThoseBeyond) {
  const Codecs codecs({Codec::kFloat32, Codec::kInt8, Codec::kInt4});
  EXPECT_EQ(codecs.at(0), Codec::kFloat32);
  EXPECT_EQ(codecs.at(1), Codec::kInt8);
  EXPECT_EQ(codecs.at(2), Codec::kInt4);
  EXPECT_EQ(codecs.at(9), Codec::kInt4);
  EXPECT_FALSE(codecs.is_float32());
}

TEST(CodecsTest, WhatMeansTheSameIsEqual) {
  EXPECT_EQ(Codecs(), Codecs({Codec::kFloat32, Codec::kFloat32}));
  EXPECT_TRUE(Codecs(Codec::kFloat32).is_float32());
  EXPECT_EQ(Codecs(), Codecs(Codec::kFloat32, 5e8)) << "nothing is encoded";
  EXPECT_NE(Codecs(Codec::kInt4), Codecs(Codec::kInt4, 5e8));
  EXPECT_EQ(Codecs().at(3), Codec::kFloat32);
  EXPECT_EQ(Codecs(Codec::kInt4), Codecs({Codec::kInt4, Codec::kInt4, Codec::kInt4}));
  EXPECT_NE(Codecs(Codec::kInt4), Codecs({Codec::kFloat32, Codec::kInt4}));
}

TEST(CodecsTest, NamesGoFromTheInsideOut) {
  EXPECT_EQ(name_of(Codecs()), "float32");
  EXPECT_EQ(name_of(Codecs({Codec::kFloat32, Codec::kInt4, Codec::kInt4})), "float32/int4");
}

TEST(CodecsTest, NamesOfChoicesLeadBack) {
  for (const std::string& name : codec_choice_names()) {
    EXPECT_EQ(name_of(CodecChoice{codec_choice_from_name(name)}), name);
  }
  EXPECT_TRUE(CodecChoice{codec_choice_from_name("auto")}.is_auto());
  EXPECT_THROW(codec_choice_from_name("int2"), InputError);
}

}  // namespace
}  // namespace dssync
