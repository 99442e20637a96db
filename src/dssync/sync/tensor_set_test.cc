#include "dssync/sync/tensor_set.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/c10d/c10d.h"

namespace dssync {
namespace {

TEST(TensorSetTest, TensorsBecomeViewsAndKeepTheirValues) {
  at::Tensor matrix = at::arange(6, at::kFloat).view({2, 3});
  at::Tensor scalar = at::full({}, 7.0, at::kFloat);
  const TensorSet set({{"matrix", matrix}, {"scalar", scalar}}, Storage::kOwned);
  const std::vector<Flat>& flats = set.flats();
  ASSERT_EQ(flats.size(), 1U);
  EXPECT_TRUE(at::equal(flats[0].vector, at::tensor({0., 1., 2., 3., 4., 5., 7.}, at::kFloat)));
  flats[0].vector.fill_(1);
  EXPECT_TRUE(at::equal(matrix, at::ones({2, 3})));
  scalar.fill_(9);
  EXPECT_EQ(flats[0].vector[6].item<float>(), 9);
}

TEST(TensorSetTest, BorrowedTensorsStayWhereTheyAre) {
  at::Tensor rows = at::arange(12, at::kFloat).view({4, 3}).narrow(0, 1, 2);  // rows 1 and 2 of a table
  at::Tensor column = at::arange(8, at::kFloat).view({4, 2}).select(1, 1);    // with holes between its elements
  const void* place = rows.data_ptr();
  TensorSet set({{"rows", rows}, {"column", column}}, Storage::kBorrowed);
  const at::Tensor& flat = set.flats().front().vector;
  EXPECT_TRUE(at::equal(flat, at::tensor({3., 4., 5., 6., 7., 8., 1., 3., 5., 7.}, at::kFloat)));
  rows.add_(1);
  set.gather();
  EXPECT_EQ(flat[0].item<float>(), 4);
  flat.mul_(10);
  EXPECT_EQ(rows[0][0].item<float>(), 4);
  set.scatter();
  EXPECT_EQ(rows[0][0].item<float>(), 40);
  EXPECT_TRUE(at::equal(column, at::tensor({10., 30., 50., 70.}, at::kFloat)));
  EXPECT_EQ(rows.data_ptr(), place);
}

TEST(TensorSetTest, OneFlatTensorForEachType) {
  at::Tensor a = at::ones({2}, at::kFloat);
  at::Tensor b = at::ones({3}, at::kDouble);
  at::Tensor c = at::ones({4}, at::kFloat);
  const TensorSet set({{"a", a}, {"b", b}, {"c", c}}, Storage::kOwned);
  const std::vector<Flat>& flats = set.flats();
  ASSERT_EQ(flats.size(), 2U);
  EXPECT_EQ(flats[0].vector.numel(), 6);
  EXPECT_EQ(flats[1].vector.scalar_type(), at::kDouble);
  EXPECT_EQ(set.bytes(), 6 * 4 + 3 * 8);
}

TEST(TensorSetTest, LeavesStayLeavesWithTheirGradients) {
  at::Tensor weight = at::ones({3}).requires_grad_();
  TensorSet({{"weight", weight}}, Storage::kOwned);
  (weight * at::tensor({1., 2., 3.}, at::kFloat)).sum().backward();
  EXPECT_TRUE(weight.is_leaf());
  EXPECT_TRUE(at::equal(weight.grad(), at::tensor({1., 2., 3.}, at::kFloat)));
}

TEST(TensorSetTest, KeepsTheOrderInMemoryOfChannelsLast) {
  at::Tensor image =
      at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor before = image.clone();
  TensorSet({{"image", image}}, Storage::kOwned);
  EXPECT_TRUE(image.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(at::equal(image, before));
}

TEST(TensorSetTest, NamesWhatCannotBeAveraged) {
  const at::Tensor counter = at::zeros({1}, at::kLong);
  try {
    TensorSet({{"counter", counter}}, Storage::kOwned);
    FAIL() << "a counter was flattened";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "'counter' is of type Long, which this PyTorch's c10d cannot sum");
  }
}

TEST(TensorSetTest, BFloat16IsRefusedWhereTheEngineCannotSumIt) {
  const at::Tensor tensor = at::zeros({4}, at::kBFloat16);
  if (can_sum(at::kBFloat16)) {
    EXPECT_NO_THROW(TensorSet({{"weight", tensor}}, Storage::kOwned));
  } else {
    EXPECT_THROW(TensorSet({{"weight", tensor}}, Storage::kOwned), InputError);
  }
}

}  // namespace
}  // namespace dssync
