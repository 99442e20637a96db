// What the noise correction adds to a step of libtorch's AdamW, for tensors of several sizes, on one thread; and what
// the barest pass over the same memory would add, which no correction after the step can be below. They alternate; the
// figures are ratios within one run.
#include <algorithm>
#include <chrono>
#include <malloc.h>
#include <string>
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
constexpr int kGradients = 4;  // in turn, so that there is noise to correct

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

std::string percent(const std::vector<double>& ratios) {
  return fmt::format("{:.1f} % ({:.1f} to {:.1f})", 1e2 * quantile(ratios, 0.5), 1e2 * quantile(ratios, 0.25),
                     1e2 * quantile(ratios, 0.75));
}

// As the correction does, reads parameters and both moments and writes the parameters, and leaves them as they are.
void pass_over(const std::vector<dssync::AdamStep>& steps) {
  const at::NoGradGuard no_grad;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    at::Tensor values = step->parameter.detach();
    values.addcmul_(step->first_moment, step->second_moment, 0);
  }
}

// Of each repeat: the times of the correction and of a pass in relation to the step's.
void compare(std::int64_t tensors, std::int64_t elements, int repeats) {
  torch::nn::Module model;
  std::vector<std::size_t> every;
  std::vector<at::Tensor> gradients;
  for (int index = 0; index < kGradients; ++index) gradients.push_back(at::randn({tensors, elements}));
  for (std::int64_t index = 0; index < tensors; ++index) {
    model.register_parameter(fmt::format("p{}", index), at::randn({elements}));
    every.push_back(static_cast<std::size_t>(index));
  }
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(1e-4));
  const dssync::Replica replica = dssync::replica_of(model, optimizer);
  dssync::NoiseCorrection correction(kReplicas);
  std::vector<double> steps;
  std::vector<double> corrections;
  std::vector<double> passes;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t index = 0; index < every.size(); ++index) {
      at::Tensor parameter = replica.parameters[index].tensor;
      parameter.mutable_grad() =
          gradients[static_cast<std::size_t>(repeat / 2 % kGradients)][static_cast<std::int64_t>(index)];
    }
    const Clock::time_point start = Clock::now();
    optimizer.step();
    const Clock::time_point stepped = Clock::now();
    if (repeat % 2 == 0) {
      correction.apply(replica.adam_steps(every));
    } else {
      pass_over(replica.adam_steps(every));
    }
    const Clock::time_point done = Clock::now();
    if (repeat < 6) continue;
    steps.push_back(seconds_between(start, stepped));
    (repeat % 2 == 0 ? corrections : passes).push_back(seconds_between(stepped, done) / steps.back());
  }
  fmt::print("{:3} tensors of {:8} values: AdamW {:8.3f} ms; the correction {} of it, a bare pass {}\n", tensors,
             elements, 1e3 * quantile(steps, 0.5), percent(corrections), percent(passes));
}

}  // namespace

int main() {
  at::set_num_threads(1);
  // A step of libtorch's allocates tensors. Large ones come from the system as pages that it has to clear, unless the
  // allocator keeps them.
  for (const bool keeps_memory : {false, true}) {
    if (keeps_memory) {
      mallopt(M_MMAP_MAX, 0);
      mallopt(M_TRIM_THRESHOLD, -1);
    }
    fmt::print("memory of a step {}\n", keeps_memory ? "is kept for the next" : "goes back to the system as usual");
    compare(28, 4'320, 800);
    compare(4, 500'000, 200);
    compare(1, 16'000'000, 40);
  }
}
