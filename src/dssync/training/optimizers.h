// torch's optimizers as the training loop uses them: made by name, their learning rate set for every iteration, their
// state taken out and put back to the bit. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "dssync/sync/replica.h"

namespace dssync {

// How much Adam's means of the gradients and of their squares keep in every iteration.
struct Betas {
  double first = 0.9;
  double second = 0.999;
};

struct OptimizerSettings {
  std::string name = "sgd";
  double learning_rate = 0.1;
  double momentum = 0.9;  // of sgd
  double weight_decay = 5e-4;
  Betas betas{};  // of adam and adamw
};

// "sgd" (with momentum), "adam" and "adamw".
const std::vector<std::string>& optimizer_names();

// How many values it remembers of every parameter: momentum, or the two moments of Adam.
int states_per_parameter(const OptimizerSettings& settings);

// A peak learning rate that suits the optimizer.
double default_learning_rate(const std::string& optimizer);

// Both throw InputError, with the known names, for another name; for numbers that make no sense, too.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSettings& settings,
                                                        const torch::nn::Module& model);

void set_learning_rate(torch::optim::Optimizer& optimizer, double learning_rate);

// Copies of all that the optimizer remembers of the model's parameters; nothing before its first step.
std::vector<OptimizerState> saved_state(const torch::nn::Module& model, torch::optim::Optimizer& optimizer);

// The next step is the one that the saved optimizer would have made. Throws Error where the state is not one of this
// model and kind of optimizer.
void restore_state(const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                   const std::vector<OptimizerState>& saved);

}  // namespace dssync
