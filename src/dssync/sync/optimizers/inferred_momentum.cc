#include "dssync/sync/optimizers/inferred_momentum.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "dssync/sync/optimizers/adam_kernel.h"
#include "dssync/sync/optimizers/noise_correction.h"

namespace dssync {
namespace {

// Beyond so many steps the share hardly changes, and stays above what it would be.
constexpr std::int64_t kMostSteps = 256;

// The elements [begin, end) of a parameter, which are as many of the move from `place` on.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t place = 0;
};

void infer_with_kernel(const AdamStep& step, const Stretch& stretch, const TakeOver::Move& move,
                       const AdamFigures& figures, double share) {
  infer_moments(step.first_moment.data_ptr<float>() + stretch.begin,
                step.second_moment.data_ptr<float>() + stretch.begin, move.before.data_ptr<float>() + stretch.place,
                move.after.data_ptr<float>() + stretch.place, stretch.end - stretch.begin, figures, share);
}

// The same on any device and for any type, with one ratio for the stretch. Moments that lie in memory in another order
// than their parameter keep what they have.
void infer_with_tensors(const AdamStep& step, const Stretch& stretch, const TakeOver::Move& move,
                        const AdamFigures& figures, double share) {
  if (!step.parameter.is_non_overlapping_and_dense() || step.parameter.strides() != step.first_moment.strides() ||
      step.parameter.strides() != step.second_moment.strides()) {
    return;
  }
  const std::int64_t size = stretch.end - stretch.begin;
  const auto in_memory = [&](const at::Tensor& tensor) {
    return tensor.detach().as_strided({tensor.numel()}, {1}).narrow(0, stretch.begin, size);
  };
  at::Tensor moment = in_memory(step.first_moment);
  const at::Tensor root = (in_memory(step.second_moment) / figures.bias2).sqrt();
  const at::Tensor signal = (moment / figures.bias1).square().sum();
  const at::Tensor scale = part_of_mean(signal, root.square().sum(), figures).sqrt();
  const at::Tensor move_by = move.after.narrow(0, stretch.place, size) - move.before.narrow(0, stretch.place, size);
  const at::Tensor change = move_by * (scale * root + figures.epsilon) * (share * figures.bias1 / figures.rate);
  const at::Tensor limit = root * figures.bias1;
  moment.sub_(at::minimum(at::maximum(change, -limit), limit));
}

}  // namespace

double share_of_momentum(std::int64_t steps, double beta) {
  double both = 0;
  double square = 0;
  for (std::int64_t ago = 0; ago < std::min(steps, kMostSteps); ++ago) {
    const double old = std::pow(beta, static_cast<double>(ago));
    const double in_momentum = (1 - beta) * old;
    const double in_sum = 1 - beta * old;  // of the steps since: the noise of this one has come with so much of itself
    both += in_momentum * in_sum;
    square += in_sum * in_sum;
  }
  return both / square;
}

InferredMomentum::InferredMomentum(const std::vector<Flat>& layout, std::size_t parameters, int replicas)
    : places_(parameters), replicas_(replicas) {
  for (std::size_t flat = 0; flat < layout.size(); ++flat) {
    for (const auto& [index, offset] : layout[flat].parts) places_[index] = {flat, offset};
  }
}

void InferredMomentum::apply(const std::vector<AdamStep>& steps, const FlatSlice& all, const TakeOver::Move& move,
                             const FlatSlice& slice, std::int64_t since_common) const {
  for (const AdamStep& step : steps) {
    const auto [flat, offset] = places_[step.index];
    if (flat != slice.flat || step.count < 1 || !(step.learning_rate > 0)) continue;
    const std::int64_t begin = std::max(slice.begin, offset);
    const std::int64_t end = std::min(slice.end, offset + step.parameter.numel());
    if (begin >= end) continue;
    const Stretch stretch{begin - offset, end - offset, begin - all.begin};
    const AdamFigures figures = figures_of(step, replicas_);
    const double share = share_of_momentum(since_common, step.beta1);
    if (suits_kernel(step)) {
      infer_with_kernel(step, stretch, move, figures, share);
    } else {
      infer_with_tensors(step, stretch, move, figures, share);
    }
  }
}

}  // namespace dssync
