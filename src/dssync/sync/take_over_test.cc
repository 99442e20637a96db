#include "dssync/sync/take_over.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

at::Tensor values(std::initializer_list<double> list) { return at::tensor(at::ArrayRef<double>(list), at::kDouble); }

TEST(TakeOverTest, ReplacingWorksOnTheLiveValues) {
  at::Tensor weight = values({1, 2, 3, 4});
  const TensorSet set({{"weight", weight}}, Storage::kOwned);
  const auto rule = replace_by_average(set.flats());
  rule->prepare({{0, 1, 3}});
  rule->averaged().front().vector.narrow(0, 1, 2).fill_(9);
  rule->apply({{0, 1, 3}});
  EXPECT_TRUE(at::equal(weight, values({1, 9, 9, 4})));
}

TEST(TakeOverTest, ACorrectionIsAddedToWhatTheStepLeft) {
  at::Tensor weight = values({1, 2, 3, 4});
  const TensorSet set({{"weight", weight}}, Storage::kOwned);
  const auto rule = add_correction(set.flats(), false);
  rule->prepare({{0, 0, 2}});
  weight.add_(10);                                                        // the step
  rule->averaged().front().vector.narrow(0, 0, 2).copy_(values({3, 1}));  // from 1 and 2
  rule->apply({{0, 0, 2}});
  EXPECT_TRUE(at::equal(weight, values({11 + 2, 12 - 1, 13, 14})));
}

TEST(TakeOverTest, SquaresStayAboveZero) {
  at::Tensor square = values({4, 4});
  const TensorSet set({{"square", square}}, Storage::kOwned);
  const auto rule = add_correction(set.flats(), true);
  rule->prepare({{0, 0, 2}});
  square.mul_(0.25);  // the step leaves 1
  rule->averaged().front().vector.copy_(values({2, 3.5}));
  rule->apply({{0, 0, 2}});
  EXPECT_TRUE(at::equal(square, values({0, 0.5})));
}

}  // namespace
}  // namespace dssync
