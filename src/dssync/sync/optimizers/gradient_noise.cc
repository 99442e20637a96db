#include "dssync/sync/optimizers/gradient_noise.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace dssync {
namespace {

// Elements that are looked at, of all parameters together: the error of the sum is a few percent, and a step costs some
// microseconds.
constexpr std::int64_t kLookedAt = 4096;

// Of the older figures, in a running mean: about the last ten steps count.
constexpr double kKept = 0.9;

// What a running mean of independent values has of their variance: the sum of its squared weights.
constexpr double kVarianceOfMean = (1 - kKept) / (1 + kKept);

bool can_be_read(const at::Tensor& gradient) {
  return gradient.is_cpu() && gradient.scalar_type() == at::kFloat && gradient.is_non_overlapping_and_dense();
}

}  // namespace

GradientNoise::GradientNoise(const std::vector<NamedTensor>& parameters, int replicas) : replicas_(replicas) {
  std::int64_t total = 0;
  for (const NamedTensor& parameter : parameters) total += parameter.tensor.numel();
  std::size_t first = 0;
  for (const NamedTensor& parameter : parameters) {
    const std::int64_t size = parameter.tensor.numel();
    if (size == 0) continue;
    const std::int64_t stride = std::clamp<std::int64_t>(total / kLookedAt, 1, size);
    sampled_.push_back({.parameter = parameter.tensor, .stride = stride, .count = size / stride, .first = first});
    first += static_cast<std::size_t>(size / stride);
  }
  means_.resize(first);
  squares_.resize(first);
}

void GradientNoise::add() {
  for (Sampled& sampled : sampled_) {
    const at::Tensor gradient = sampled.parameter.grad();
    if (!gradient.defined() || gradient.is_sparse()) continue;
    if (can_be_read(gradient)) {
      add(sampled, gradient.data_ptr<float>(), sampled.stride);
    } else {
      const at::Tensor some = gradient.reshape({-1}).slice(0, 0, sampled.count * sampled.stride, sampled.stride);
      add(sampled, some.to(at::kCPU, at::kFloat).contiguous().data_ptr<float>(), 1);
    }
  }
  sum_up();
}

void GradientNoise::add(Sampled& sampled, const float* gradient, std::int64_t stride) {
  // The first gradients count in full: a running mean that starts at zero would be too small.
  ++sampled.seen;
  const auto share = static_cast<float>((1 - kKept) / (1 - std::pow(kKept, static_cast<double>(sampled.seen))));
  float* mean = means_.data() + sampled.first;
  float* square = squares_.data() + sampled.first;
  for (std::int64_t i = 0; i < sampled.count; ++i) {
    const float value = gradient[i * stride];
    if (!std::isfinite(value)) continue;  // of a step that a GradScaler skips; it would never be forgotten
    mean[i] += share * (value - mean[i]);
    square[i] += share * (value * value - square[i]);
  }
}

void GradientNoise::sum_up() {
  noise_ = square_ = 0;
  for (const Sampled& sampled : sampled_) {
    if (sampled.seen < 2) continue;
    const double weight = static_cast<double>(sampled.parameter.numel()) / static_cast<double>(sampled.count);
    // While few gradients have come, their mean has more of the variance.
    const double old = std::pow(kKept, static_cast<double>(sampled.seen));
    const double of_mean = kVarianceOfMean * (1 + old) / (1 - old);
    double variance = 0;
    double square = 0;
    for (std::size_t i = sampled.first; i < sampled.first + static_cast<std::size_t>(sampled.count); ++i) {
      variance += static_cast<double>(squares_[i]) - static_cast<double>(means_[i]) * means_[i];
      square += squares_[i];
    }
    noise_ += weight * std::max(0.0, variance) / (1 - of_mean);
    square_ += weight * square;
  }
}

double GradientNoise::ratio() const {
  if (!(square_ > 0)) return 1;
  const double others = 1 - 1 / static_cast<double>(replicas_);
  return 1 / (1 - others * std::clamp(noise_ / square_, 0.0, 1.0));
}

GradientNoise::Memory GradientNoise::memory() const {
  std::vector<std::int64_t> counts;
  for (const Sampled& sampled : sampled_) counts.push_back(sampled.seen);
  return {at::stack({at::tensor(means_), at::tensor(squares_)}), at::tensor(counts, at::kLong)};
}

void GradientNoise::restore(const Memory& memory) {
  const auto elements = static_cast<std::int64_t>(means_.size());
  if (memory.values.numel() != 2 * elements || memory.counts.numel() != static_cast<std::int64_t>(sampled_.size()))
    return;
  const at::Tensor values = memory.values.to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor counts = memory.counts.to(at::kCPU, at::kLong).contiguous();
  std::copy_n(values.data_ptr<float>(), elements, means_.begin());
  std::copy_n(values.data_ptr<float>() + elements, elements, squares_.begin());
  for (std::size_t index = 0; index < sampled_.size(); ++index) {
    sampled_[index].seen = counts.data_ptr<std::int64_t>()[index];
  }
  sum_up();
}

}  // namespace dssync
