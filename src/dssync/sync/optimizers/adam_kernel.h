// The correction of one tensor's Adam step, in one pass over memory. Pure; thread-safe. noise_correction.h says what it
// is for; this header has no PyTorch in it, so that the loop can be compiled for several CPUs.
#pragma once

#include <cstdint>

namespace dssync {

// With m' = m / bias1 and v' = v / bias2 the optimizer stepped by -rate m' / (sqrt(v') + epsilon).
struct AdamFigures {
  double rate = 0;
  double bias1 = 1;  // 1 - beta1^t
  double bias2 = 1;  // 1 - beta2^t
  double epsilon = 0;
  double variance_of_mean = 0;  // what m' has of the variance of one gradient
  double least = 1;             // of v' is left without any signal: 1 / replicas
};

// Neighbours in memory that share one estimate. Single elements are too noisy: those whose m' is large by chance would
// be taken for signal. Longer blocks mix rows that have little in common (docs/noise.md compares them).
inline constexpr std::int64_t kBlock = 64;

// Values that are worked on together. Whoever cuts a tensor into parts cuts it at multiples of this, so that results do
// not depend on the parts.
inline constexpr std::int64_t kGroup = 16 * kBlock;

// Adds to `values` what the step of everyone's mean gradient, -rate m' / sqrt(r v'), differs by; nothing where v' is
// far below the square of epsilon. The results are the same to the bit on every CPU.
void correct_adam_step(float* values, const float* first_moments, const float* second_moments, std::int64_t count,
                       const AdamFigures& figures);

// An average has moved these values from `before` to `after`. Takes `share` of what that tells of the first moments
// away from them: a move d means that the last steps went -d too far, and a step goes -rate m' / (sqrt(r v') +
// epsilon). No moment changes by more than the root of its v'.
void infer_moments(float* first_moments, const float* second_moments, const float* before, const float* after,
                   std::int64_t count, const AdamFigures& figures, double share);

}  // namespace dssync
