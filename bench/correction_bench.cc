// What the noise correction adds to a step of libtorch's AdamW, for tensors of several sizes, on one thread. Both
// alternate; the figures are ratios within one run.
#include <algorithm>
#include <chrono>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>

#include "dssync/sync/optimizers/noise_correction.h"
#include "dssync/sync/replica.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReplicas = 8;

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// Of each repeat: the correction's time in relation to the step's.
void compare(std::int64_t tensors, std::int64_t elements, int repeats) {
  torch::nn::Module model;
  std::vector<std::size_t> every;
  for (std::int64_t index = 0; index < tensors; ++index) {
    model.register_parameter(fmt::format("p{}", index), at::randn({elements}));
    every.push_back(static_cast<std::size_t>(index));
  }
  for (at::Tensor& parameter : model.parameters()) parameter.mutable_grad() = at::randn({elements});
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(1e-4));
  const dssync::Replica replica = dssync::replica_of(model, optimizer);
  dssync::NoiseCorrection correction(kReplicas);
  std::vector<double> steps;
  std::vector<double> ratios;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Clock::time_point start = Clock::now();
    optimizer.step();
    const Clock::time_point stepped = Clock::now();
    correction.apply(replica.adam_steps(every));
    const Clock::time_point corrected = Clock::now();
    if (repeat < 3) continue;
    steps.push_back(std::chrono::duration<double>(stepped - start).count());
    ratios.push_back(std::chrono::duration<double>(corrected - stepped).count() / steps.back());
  }
  fmt::print("{:3} tensors of {:8} values: AdamW {:8.3f} ms; the correction {:.1f} % of it ({:.1f} to {:.1f})\n", tensors,
             elements, 1e3 * quantile(steps, 0.5), 1e2 * quantile(ratios, 0.5), 1e2 * quantile(ratios, 0.25),
             1e2 * quantile(ratios, 0.75));
}

}  // namespace

int main() {
  at::set_num_threads(1);
  compare(28, 4'320, 400);
  compare(4, 500'000, 100);
  compare(1, 16'000'000, 20);
}
