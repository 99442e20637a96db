#include "dssync/training/learning_rate.h"

#include <cmath>
#include <numbers>

namespace dssync {

double LearningRate::at(std::int64_t iteration) const {
  if (iteration >= total_iterations) return 0;
  if (iteration < warmup_iterations) {
    return peak * static_cast<double>(iteration + 1) / static_cast<double>(warmup_iterations);
  }
  const std::int64_t fallen = fallen_at > 0 ? fallen_at : total_iterations;
  if (iteration >= fallen) return final;
  const double done =
      static_cast<double>(iteration - warmup_iterations) / static_cast<double>(fallen - warmup_iterations);
  return final + (peak - final) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace dssync
