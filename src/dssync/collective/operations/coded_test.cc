#include "dssync/collective/operations/coded.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/codec/encoding.h"

namespace dssync {
namespace {

at::Tensor message_like(Codec codec, const at::Tensor& values) {
  return at::full({encoded_bytes(codec, values.numel())}, 0xAB, at::kByte);
}

// With all that is special.
at::Tensor values_of(std::int64_t size) {
  at::Tensor values = at::sin(at::arange(size, at::kFloat) * 0.7F) * 0.01F;
  if (size > 300) {
    values[140] = std::nanf("");
    values[300] = 1e-39F;
    values.narrow(0, 256, 40).zero_();
  }
  if (size > 700) values[640] = std::numeric_limits<float>::infinity();
  if (size > 1000) values.narrow(0, 768, 128).zero_();
  return values;
}

class CodedTest : public ::testing::TestWithParam<Codec> {};

TEST_P(CodedTest, OperationsOfPyTorchGiveTheBytesOfTheKernels) {
  for (const std::int64_t size : {1, 2, 5, 64, 127, 128, 129, 255, 301, 1024, 1333}) {
    const at::Tensor values = values_of(size);
    const at::Tensor expected = message_like(GetParam(), values);
    const at::Tensor bytes = message_like(GetParam(), values);
    encode(GetParam(), values, 77, expected, 5);
    encode_by_operations(GetParam(), values, 77, bytes, 5);
    EXPECT_TRUE(at::equal(bytes, expected)) << size;
    const at::Tensor decoded = at::empty_like(values);
    const at::Tensor by_operations = at::empty_like(values);
    decode(GetParam(), expected, decoded);
    decode_by_operations(GetParam(), expected, by_operations);
    EXPECT_TRUE(at::equal(decoded.view(at::kInt), by_operations.view(at::kInt))) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodedTest,
                         ::testing::Values(Codec::kFloat32, Codec::kBfloat16, Codec::kInt8, Codec::kInt4),
                         [](const auto& codec) { return std::string(name_of(codec.param)); });

TEST(CodedTest, OtherTypesStayAsTheyAre) {
  EXPECT_EQ(codec_for(at::ones({1}), Codec::kInt4, Codec::kInt4), Codec::kInt4);
  EXPECT_EQ(codec_for(at::ones({1}), Codec::kInt4, Codec::kBfloat16), Codec::kBfloat16);
  EXPECT_EQ(codec_for(at::ones({1}), Codec::kFloat32, Codec::kBfloat16), Codec::kFloat32);
  EXPECT_EQ(codec_for(at::ones({1}, at::kDouble), Codec::kInt4, Codec::kInt4), Codec::kFloat32);
  EXPECT_EQ(codec_for(at::ones({1}, at::kBFloat16), Codec::kInt4, Codec::kInt4), Codec::kFloat32);
}

}  // namespace
}  // namespace dssync
