#include "dssync/sync/optimizers/adam_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The compiler makes the loop once for each kind of CPU, and the program takes the one that fits when it starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define DSSYNC_FOR_EVERY_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DSSYNC_FOR_EVERY_CPU
#endif
#define DSSYNC_INLINE inline __attribute__((always_inline))

namespace dssync {
namespace {

// So many values at once, whatever the CPU can do: so sums are made in the same order everywhere.
constexpr int kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Bits = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));
static_assert(kBlock % kLanes == 0);
// What is worked out once per block is worked out for a group at a time. It stays in the first cache between the pass
// that adds up and the one that corrects.
static_assert(kGroup == kLanes * kBlock);

// A guess at a root is off by so much of a factor.
constexpr float kOfGuess = 0.703952253F;

struct Scales {
  float first;            // m'^2 / m^2
  float second;           // v' / v
  float rate;             // of m / sqrt(v)
  float squared_epsilon;  // added to v, where the optimizer adds epsilon to its root
  float variance_of_mean;
  float least;
  std::int32_t far_from_epsilon;  // the bits of a v from which on epsilon changes less than the guess at a root
};

// The part of v' that everyone's mean gradient would have, where the squares of m' add up to `signal` and the v' to
// `seen`: between `least` and 1.
DSSYNC_INLINE float part_of_mean(float signal, float seen, float variance_of_mean, float least) {
  const float share = (signal - variance_of_mean * seen) / ((1 - variance_of_mean) * seen);
  const float part = least + (1 - least) * std::min(std::max(share, 0.0F), 1.0F);
  return seen > 0 ? part : 1.0F;
}

DSSYNC_INLINE void load(Floats& values, const float* from) { std::memcpy(&values, from, sizeof values); }
DSSYNC_INLINE void store(const Floats& values, float* to) { std::memcpy(to, &values, sizeof values); }

// The sum of all lanes, in the order of a tree.
template <int... kOrder>
DSSYNC_INLINE void add_lanes(Floats& values) {
  values += __builtin_shuffle(values, Bits{kOrder...});
}
DSSYNC_INLINE float sum_of(const Floats& lanes) {
  Floats values = lanes;
  add_lanes<8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7>(values);
  add_lanes<4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11>(values);
  add_lanes<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(values);
  add_lanes<1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14>(values);
  return values[0];
}

// kOfGuess times this is 1 / sqrt(value) within 0.07 %, which is less than the estimate is off: a first guess from the
// bits, then one of Newton's steps with the factors that make the largest error smallest. Far quicker than a root and a
// division, and the same on every CPU.
DSSYNC_INLINE void guess_inverse_roots(Floats& values) {
  Bits bits;
  std::memcpy(&bits, &values, sizeof bits);
  bits = 0x5f1ffff9 - (bits >> 1);
  Floats guess;
  std::memcpy(&guess, &bits, sizeof guess);
  values = guess * (2.38924456F - values * guess * guess);
}

// The sums of each block's m^2 and v, and the bits of the smallest v of all (floats that are not negative have the
// order of their bits).
DSSYNC_INLINE std::int32_t add_up(const float* first_moments, const float* second_moments, int blocks, float* signals,
                                  float* seens) {
  Bits smallest;
  std::memset(&smallest, 0x7f, sizeof smallest);
  for (int block = 0; block < blocks; ++block) {
    Floats signal = {};
    Floats seen = {};
#pragma GCC unroll 4
    for (std::int64_t i = block * kBlock; i < (block + 1) * kBlock; i += kLanes) {
      Floats first;
      Floats second;
      Bits bits;
      load(first, first_moments + i);
      load(second, second_moments + i);
      std::memcpy(&bits, &second, sizeof bits);
      signal += first * first;
      seen += second;
      smallest = bits < smallest ? bits : smallest;
    }
    signals[block] = sum_of(signal);
    seens[block] = sum_of(seen);
  }
  std::int32_t result = smallest[0];
  for (int lane = 1; lane < kLanes; ++lane) result = std::min(result, smallest[lane]);
  return result;
}

template <bool kNearEpsilon>
DSSYNC_INLINE void lengthen(float* values, const float* first_moments, const float* second_moments, float by,
                            float squared_epsilon) {
#pragma GCC unroll 4
  for (int i = 0; i < kBlock; i += kLanes) {
    Floats first;
    Floats second;
    Floats value;
    load(first, first_moments + i);
    load(second, second_moments + i);
    load(value, values + i);
    Floats inverse = second + squared_epsilon;
    guess_inverse_roots(inverse);
    Floats change = by * first * inverse;
    // This factor is 1 elsewhere, and vanishes where epsilon is what the optimizer divides by.
    if (kNearEpsilon) change *= kOfGuess * kOfGuess * second * inverse * inverse;
    value -= change;
    store(value, values + i);
  }
}

template <bool kNearEpsilon>
DSSYNC_INLINE void lengthen_blocks(float* values, const float* first_moments, const float* second_moments, int blocks,
                                   const float* longer, float squared_epsilon) {
  for (int block = 0; block < blocks; ++block) {
    const std::int64_t begin = block * kBlock;
    lengthen<kNearEpsilon>(values + begin, first_moments + begin, second_moments + begin, longer[block],
                           squared_epsilon);
  }
}

// Up to kLanes blocks.
DSSYNC_INLINE void correct_blocks(float* values, const float* first_moments, const float* second_moments, int blocks,
                                  const Scales& scales) {
  float signals[kLanes] = {};
  float seens[kLanes] = {};
  float longer[kLanes];
  const std::int32_t smallest = add_up(first_moments, second_moments, blocks, signals, seens);
  for (int block = 0; block < kLanes; ++block) {
    const float part = part_of_mean(signals[block] * scales.first, seens[block] * scales.second,
                                    scales.variance_of_mean, scales.least);
    longer[block] = kOfGuess * scales.rate * (1 / std::sqrt(part) - 1);
  }
  if (smallest >= scales.far_from_epsilon) {
    lengthen_blocks<false>(values, first_moments, second_moments, blocks, longer, scales.squared_epsilon);
  } else {
    lengthen_blocks<true>(values, first_moments, second_moments, blocks, longer, scales.squared_epsilon);
  }
}

DSSYNC_INLINE void copy_padded(const float* from, std::size_t count, float* to, int blocks) {
  std::copy_n(from, count, to);
  std::fill(to + count, to + blocks * kBlock, 0.0F);
}

// The bits of a v next to which the square of epsilon is less than a thousandth, or which is almost the smallest that
// guesses at roots are good for.
std::int32_t far_from(float squared_epsilon) {
  const float limit = std::max(squared_epsilon * 1024, 1e-30F);
  std::int32_t bits;
  std::memcpy(&bits, &limit, sizeof bits);
  return bits;
}

}  // namespace

DSSYNC_FOR_EVERY_CPU
void correct_adam_step(float* values, const float* first_moments, const float* second_moments, std::int64_t count,
                       const AdamFigures& figures) {
  const Scales scales = {
      .first = static_cast<float>(1 / (figures.bias1 * figures.bias1)),
      .second = static_cast<float>(1 / figures.bias2),
      .rate = static_cast<float>(figures.rate / figures.bias1 * std::sqrt(figures.bias2)),
      .squared_epsilon = static_cast<float>(figures.epsilon * figures.epsilon * figures.bias2),
      .variance_of_mean = static_cast<float>(figures.variance_of_mean),
      .least = static_cast<float>(figures.least),
      .far_from_epsilon = far_from(static_cast<float>(figures.epsilon * figures.epsilon * figures.bias2))};
  std::int64_t begin = 0;
  for (; begin + kGroup <= count; begin += kGroup) {
    correct_blocks(values + begin, first_moments + begin, second_moments + begin, kLanes, scales);
  }
  if (begin == count) return;
  // What is left is filled up to whole blocks with zeros, which neither change sums nor are changed.
  const auto rest = static_cast<std::size_t>(count - begin);
  const auto blocks = static_cast<int>((count - begin + kBlock - 1) / kBlock);
  float value[kGroup];
  float first[kGroup];
  float second[kGroup];
  copy_padded(values + begin, rest, value, blocks);
  copy_padded(first_moments + begin, rest, first, blocks);
  copy_padded(second_moments + begin, rest, second, blocks);
  correct_blocks(value, first, second, blocks, scales);
  std::copy_n(value, rest, values + begin);
}

DSSYNC_FOR_EVERY_CPU
void infer_moments(float* __restrict first_moments, const float* __restrict second_moments,
                   const float* __restrict before, const float* __restrict after, std::int64_t count,
                   const AdamFigures& figures, double share) {
  const auto first_scale = static_cast<float>(1 / (figures.bias1 * figures.bias1));
  const auto second_scale = static_cast<float>(1 / figures.bias2);
  const auto bias1 = static_cast<float>(figures.bias1);
  const auto per_move = static_cast<float>(share * figures.bias1 / figures.rate);
  const auto epsilon = static_cast<float>(figures.epsilon);
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, count);
    float signal = 0;
    float seen = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      signal += first_moments[i] * first_moments[i];
      seen += second_moments[i];
    }
    const float part =
        std::sqrt(part_of_mean(signal * first_scale, seen * second_scale, static_cast<float>(figures.variance_of_mean),
                               static_cast<float>(figures.least)));
    for (std::int64_t i = begin; i < end; ++i) {
      const float root = std::sqrt(second_moments[i] * second_scale);
      const float change = per_move * (after[i] - before[i]) * (part * root + epsilon);
      first_moments[i] -= std::min(std::max(change, -bias1 * root), bias1 * root);
    }
  }
}

}  // namespace dssync
