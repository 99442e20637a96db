// Losses and areas worked out by hand.
#include "dssync/training/task.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(TaskTest, TellsClassesAndSymbols) {
  const Task& images = task_of(ImageShape());
  EXPECT_FALSE(images.is_ranking);
  const at::Tensor scores = at::tensor({0.F, std::log(3.F), 0.F, 0.F}).view({2, 2});
  const at::Tensor labels = at::tensor({1, 0}, at::kLong);
  EXPECT_NEAR(images.loss(scores, labels).item<double>(), (std::log(4 / 3.) + std::log(2.)) / 2, 1e-6);
  EXPECT_TRUE(at::equal(images.is_told(scores, labels), at::tensor({1, 1}, at::kLong).to(at::kBool)));
  const Task& text = task_of(TextShape());
  EXPECT_NEAR(text.loss(scores.unsqueeze(0), labels.unsqueeze(0)).item<double>(),
              images.loss(scores, labels).item<double>(), 1e-7);
  EXPECT_EQ(text.is_told(scores.unsqueeze(0), labels.unsqueeze(0)).sizes(), at::IntArrayRef({1, 2}));
}

TEST(TaskTest, TellsClicks) {
  const Task& clicks = task_of(ClickShape());
  EXPECT_TRUE(clicks.is_ranking);
  const at::Tensor scores = at::tensor({std::log(3.F), std::log(3.F), -1.F});
  const at::Tensor targets = at::tensor({1.F, 0.F, 0.F});
  EXPECT_NEAR(clicks.loss(scores, targets).item<double>(),
              (std::log(4 / 3.) + std::log(4.) + std::log(1 + std::exp(-1.))) / 3, 1e-6);
  EXPECT_TRUE(at::equal(clicks.is_told(scores, targets), at::tensor({1, 0, 1}, at::kLong).to(at::kBool)));
}

TEST(AreaUnderCurveTest, CountsPairs) {
  EXPECT_EQ(area_under_curve({{3, 4}, {1, 2}}), 1);
  EXPECT_EQ(area_under_curve({{1, 2}, {3, 4}}), 0);
  EXPECT_EQ(area_under_curve({{4, 1}, {2, 3, 0}}), 4 / 6.);  // 3 + 1 of 6 pairs
  EXPECT_EQ(area_under_curve({{2, 2, 5}, {2, 1}}), 5 / 6.);  // 1.5 + 1.5 + 2
  EXPECT_EQ(area_under_curve({{7, 7}, {7, 7, 7}}), 0.5);
  EXPECT_EQ(area_under_curve({{}, {1}}), 0.5);
}

}  // namespace
}  // namespace dssync
