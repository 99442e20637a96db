#include "dssync/sync/optimizers/noise_correction.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/grad_mode.h>

#include "dssync/sync/optimizers/adam_kernel.h"

namespace dssync {

// The first gradient is its own mean: nothing tells noise from signal then, and all of it counts as signal.
constexpr double kMostOfMean = 0.9;
// Values for which another thread pays: as many as PyTorch's own element-wise loops take.
constexpr std::int64_t kValuesPerThread = 32'768;
static_assert(kValuesPerThread % kGroup == 0);

AdamFigures figures_of(const AdamStep& step, int replicas) {
  // m' is a weighted mean of gradients, and has so much of their variance: the sum of its squared weights.
  const double old = std::pow(step.beta1, step.count);
  const double of_mean = (1 - step.beta1) / (1 + step.beta1) * (1 + old) / (1 - old);
  return {.rate = step.learning_rate,
          .bias1 = 1 - old,
          .bias2 = 1 - std::pow(step.beta2, step.count),
          .epsilon = step.epsilon,
          .variance_of_mean = std::min(of_mean, kMostOfMean),
          .least = 1 / static_cast<double>(replicas)};
}

namespace {

bool are_alike(const at::Tensor& a, const at::Tensor& b) {
  return b.is_cpu() && b.scalar_type() == at::kFloat && a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace

at::Tensor part_of_mean(const at::Tensor& signal, const at::Tensor& seen, const AdamFigures& figures) {
  const at::Tensor share = (signal - figures.variance_of_mean * seen) / ((1 - figures.variance_of_mean) * seen);
  return at::where(seen > 0, figures.least + (1 - figures.least) * share.clamp(0, 1), at::ones_like(seen));
}

bool suits_kernel(const AdamStep& step) {
  return step.parameter.is_non_overlapping_and_dense() && are_alike(step.parameter, step.parameter) &&
         are_alike(step.parameter, step.first_moment) && are_alike(step.parameter, step.second_moment);
}

namespace {

// PyTorch's iterator walks over the groups, with as many threads as the optimizer's step.
void correct_with_threads(const AdamStep& step, const AdamFigures& figures, std::int64_t groups) {
  const auto starts = [groups](const at::Tensor& tensor) { return tensor.detach().as_strided({groups}, {kGroup}); };
  const at::Tensor values = starts(step.parameter);
  const at::Tensor first_moments = starts(step.first_moment);
  const at::Tensor second_moments = starts(step.second_moment);
  at::TensorIterator iterator = at::TensorIteratorConfig()
                                    .set_check_mem_overlap(false)
                                    .resize_outputs(false)
                                    .add_output(values)
                                    .add_input(first_moments)
                                    .add_input(second_moments)
                                    .build();
  iterator.for_each(
      [&figures](char** data, const std::int64_t* /*strides*/, std::int64_t count) {
        correct_adam_step(reinterpret_cast<float*>(data[0]), reinterpret_cast<const float*>(data[1]),
                          reinterpret_cast<const float*>(data[2]), count * kGroup, figures);
      },
      kValuesPerThread / kGroup);
}

void correct_with_kernel(const AdamStep& step, const AdamFigures& figures) {
  const std::int64_t count = step.parameter.numel();
  std::int64_t done = 0;
  if (count >= 2 * kValuesPerThread && at::get_num_threads() > 1) {
    done = count / kGroup * kGroup;
    correct_with_threads(step, figures, count / kGroup);
  }
  correct_adam_step(step.parameter.data_ptr<float>() + done, step.first_moment.data_ptr<float>() + done,
                    step.second_moment.data_ptr<float>() + done, count - done, figures);
}

// Elements as rows of blocks, in the order in which they lie in memory where there is one.
at::Tensor in_blocks(const at::Tensor& tensor, at::ScalarType type) {
  const at::Tensor flat = tensor.detach().to(type).reshape({-1});
  return at::constant_pad_nd(flat, {0, (kBlock - flat.numel() % kBlock) % kBlock}).view({-1, kBlock});
}

// The same on any device and for any type.
void correct_with_tensors(const AdamStep& step, const AdamFigures& figures) {
  at::Tensor values = step.parameter.detach();
  const at::ScalarType type = values.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor moment = in_blocks(step.first_moment, type) / figures.bias1;
  const at::Tensor seen = in_blocks(step.second_moment, type) / figures.bias2;
  const at::Tensor sum = seen.sum(1, true);
  const at::Tensor part = part_of_mean(moment.square().sum(1, true), sum, figures);
  const at::Tensor inverse = (seen + figures.epsilon * figures.epsilon).rsqrt();
  const at::Tensor difference = moment * (1 - part.rsqrt()) * inverse * (seen * inverse.square());
  values.add_(difference.view({-1}).narrow(0, 0, values.numel()).view(values.sizes()).to(values.scalar_type()),
              figures.rate);
}

}  // namespace

void NoiseCorrection::apply(const std::vector<AdamStep>& steps) {
  if (replicas_ < 2) return;
  const at::NoGradGuard no_grad;
  // From the last to the first: what the optimizer stepped last is most likely still in a cache.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    double& corrected = corrected_[step->parameter.unsafeGetTensorImpl()];
    if (step->count < 2 || step->count == corrected) continue;  // one gradient shows no variance
    corrected = step->count;
    const AdamFigures figures = figures_of(*step, replicas_);
    if (suits_kernel(*step)) {
      correct_with_kernel(*step, figures);
    } else {
      correct_with_tensors(*step, figures);
    }
  }
}

}  // namespace dssync
