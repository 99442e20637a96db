#include "dssync/training/learning_rate.h"

#include <cmath>
#include <numbers>

namespace dssync {

double LearningRate::at(std::int64_t iteration) const {
  if (iteration >= total_iterations) return 0;
  if (iteration < warmup_iterations) {
    return peak * static_cast<double>(iteration + 1) / static_cast<double>(warmup_iterations);
  }
  const double done =
      static_cast<double>(iteration - warmup_iterations) / static_cast<double>(total_iterations - warmup_iterations);
  return peak * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace dssync
