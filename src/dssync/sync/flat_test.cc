#include "dssync/sync/flat.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/c10d.h"

namespace dssync {
namespace {

TEST(FlatTest, TensorsBecomeViewsAndKeepTheirValues) {
  at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  at::Tensor scalar = at::full({}, 7.0, at::kFloat);
  const std::vector<Flat> flats = flatten({{"matrix", matrix}, {"scalar", scalar}});
  ASSERT_EQ(flats.size(), 1U);
  EXPECT_TRUE(at::equal(flats[0].vector, at::tensor({0., 1., 2., 3., 4., 5., 7.}, at::kFloat)));
  flats[0].vector.fill_(1);
  EXPECT_TRUE(at::equal(matrix, at::ones({2, 3})));
  scalar.fill_(9);
  EXPECT_EQ(flats[0].vector[6].item<float>(), 9);
}

TEST(FlatTest, OneFlatTensorForEachType) {
  at::Tensor a = at::ones({2}, at::kFloat);
  at::Tensor b = at::ones({3}, at::kDouble);
  at::Tensor c = at::ones({4}, at::kFloat);
  const std::vector<Flat> flats = flatten({{"a", a}, {"b", b}, {"c", c}});
  ASSERT_EQ(flats.size(), 2U);
  EXPECT_EQ(flats[0].vector.numel(), 6);
  EXPECT_EQ(flats[1].vector.scalar_type(), at::kDouble);
  EXPECT_EQ(bytes_of(flats), 6 * 4 + 3 * 8);
}

TEST(FlatTest, LeavesStayLeavesWithTheirGradients) {
  at::Tensor weight = at::ones({3}).requires_grad_();
  flatten({{"weight", weight}});
  (weight * at::tensor({1., 2., 3.}, at::kFloat)).sum().backward();
  EXPECT_TRUE(weight.is_leaf());
  EXPECT_TRUE(at::equal(weight.grad(), at::tensor({1., 2., 3.}, at::kFloat)));
}

TEST(FlatTest, KeepsTheOrderInMemoryOfChannelsLast) {
  at::Tensor image =
      at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor before = image.clone();
  flatten({{"image", image}});
  EXPECT_TRUE(image.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(image, before));
}

TEST(FlatTest, NamesWhatCannotBeAveraged) {
  const at::Tensor counter = at::zeros({1}, at::kLong);
  try {
    flatten({{"counter", counter}});
    FAIL() << "a counter was flattened";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "'counter' is of type Long, which this PyTorch's c10d cannot sum");
  }
}

TEST(FlatTest, BFloat16IsRefusedWhereTheEngineCannotSumIt) {
  const at::Tensor tensor = at::zeros({4}, at::kBFloat16);
  if (can_sum(at::kBFloat16)) {
    EXPECT_NO_THROW(flatten({{"weight", tensor}}));
  } else {
    EXPECT_THROW(flatten({{"weight", tensor}}), InputError);
  }
}

}  // namespace
}  // namespace dssync
