#include "dssync/training/task.h"

#include <algorithm>
#include <cstdint>

#include <ATen/ATen.h>

namespace dssync {
namespace {

constexpr Task kClassification{
    [](const at::Tensor& scores, const at::Tensor& targets) {
      return at::cross_entropy_loss(scores.flatten(0, -2), targets.flatten());
    },
    [](const at::Tensor& scores, const at::Tensor& targets) { return scores.argmax(-1).eq(targets); }, false};

constexpr Task kYesOrNo{
    [](const at::Tensor& scores, const at::Tensor& targets) {
      return at::binary_cross_entropy_with_logits(scores, targets);
    },
    [](const at::Tensor& scores, const at::Tensor& targets) { return scores.gt(0).eq(targets.gt(0.5)); }, true};

}  // namespace

const Task& task_of(const ExampleShape& shape) {
  return std::holds_alternative<ClickShape>(shape) ? kYesOrNo : kClassification;
}

// For every positive score, counts the negative ones that are lower, and those that are equal.
double area_under_curve(RankedScores scores) {
  auto& [positive, negative] = scores;
  if (positive.empty() || negative.empty()) return 0.5;
  std::sort(positive.begin(), positive.end());
  std::sort(negative.begin(), negative.end());
  auto lower = negative.begin();
  auto not_higher = negative.begin();
  std::int64_t halves = 0;
  for (const float score : positive) {
    lower = std::lower_bound(lower, negative.end(), score);
    not_higher = std::upper_bound(not_higher, negative.end(), score);
    halves += (lower - negative.begin()) + (not_higher - negative.begin());
  }
  return static_cast<double>(halves) / 2 /
         (static_cast<double>(positive.size()) * static_cast<double>(negative.size()));
}

}  // namespace dssync
