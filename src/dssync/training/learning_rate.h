// The learning rate of every iteration: a linear warm-up, then half a cosine down to the final rate, then that. Pure;
// thread-safe.
#pragma once

#include <cstdint>

namespace dssync {

struct LearningRate {
  double peak = 0.1;
  std::int64_t warmup_iterations = 0;  // the last of them has the peak rate
  std::int64_t total_iterations = 1;
  double final = 0;
  std::int64_t fallen_at = 0;  // the first iteration with the final rate; 0: after the last one

  // Iterations count from 0. Beyond the last one it is 0.
  double at(std::int64_t iteration) const;
};

}  // namespace dssync
