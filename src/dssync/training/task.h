// What is learned from examples: how scores become a loss, and which targets were told. Pure; thread-safe.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/training/data/dataset.h"

namespace dssync {

struct Task {
  // The mean over all targets.
  at::Tensor (*loss)(const at::Tensor& scores, const at::Tensor& targets);
  // Of every target: whether the scores tell it.
  at::Tensor (*is_told)(const at::Tensor& scores, const at::Tensor& targets);
  // Targets are 0 or 1, and there is one score for each, so that the area under the curve can be had.
  bool is_ranking;
};

// Images and text: one of several classes or symbols, the scores of which are in the last dimension. Clicks: yes or no.
const Task& task_of(const ExampleShape& shape);

// Scores by what the target was.
struct RankedScores {
  std::vector<float> positive;
  std::vector<float> negative;
};

// The area under the ROC curve: how probable it is that a positive example has a higher score than a negative one;
// equal scores count a half. 0.5 where there are none of a kind.
double area_under_curve(RankedScores scores);

}  // namespace dssync
