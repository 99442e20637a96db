#include "dssync/sync/replica.h"

#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include "dssync/comm/c10d/c10d.h"

namespace dssync {
namespace {

std::vector<NamedTensor> parameters_of(torch::nn::Module& model, bool trained) {
  std::vector<NamedTensor> result;
  std::set<const void*> seen;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad() == trained && seen.insert(item.value().unsafeGetTensorImpl()).second) {
      result.push_back({item.key(), item.value()});
    }
  }
  return result;
}

std::vector<NamedTensor> buffers_of(torch::nn::Module& model) {
  std::vector<NamedTensor> result;
  for (const auto& item : model.named_buffers()) result.push_back({item.key(), item.value()});
  return result;
}

// The state that an optimizer keeps for a parameter; null where there is none yet.
torch::optim::OptimizerParamState* state_of(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  auto& states = optimizer.state();
#if TORCH_VERSION_MAJOR >= 2
  const auto found = states.find(parameter.unsafeGetTensorImpl());
#else
  const auto found = states.find(c10::guts::to_string(parameter.unsafeGetTensorImpl()));
#endif
  return found == states.end() ? nullptr : found->second.get();
}

Normalizing normalizing_of(torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<torch::optim::SGD*>(&optimizer) != nullptr) return Normalizing::kNo;
  const bool is_adam = dynamic_cast<torch::optim::Adam*>(&optimizer) != nullptr ||
                       dynamic_cast<torch::optim::AdamW*>(&optimizer) != nullptr;
  return is_adam ? Normalizing::kAdam : Normalizing::kUnknown;
}

// By which options an optimizer steps each parameter. Groups may be added to an optimizer, and stay where they are.
class OptionsByParameter {
 public:
  explicit OptionsByParameter(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  // Null where the optimizer does not have the parameter.
  torch::optim::OptimizerOptions* find(const at::Tensor& parameter) {
    if (known_groups_ != optimizer_.param_groups().size()) look();
    const auto found = options_.find(parameter.unsafeGetTensorImpl());
    return found == options_.end() ? nullptr : &optimizer_.param_groups()[found->second].options();
  }

 private:
  void look() {
    known_groups_ = optimizer_.param_groups().size();
    for (std::size_t group = 0; group < known_groups_; ++group) {
      for (const at::Tensor& parameter : optimizer_.param_groups()[group].params()) {
        options_[parameter.unsafeGetTensorImpl()] = group;
      }
    }
  }

  torch::optim::Optimizer& optimizer_;
  std::unordered_map<const void*, std::size_t> options_;  // the number of its group
  std::size_t known_groups_ = 0;
};

template <typename Options, typename State>
AdamStep adam_step(const at::Tensor& parameter, Options& options, State& state) {
  return {.parameter = parameter,
          .first_moment = state.exp_avg(),
          .second_moment = state.exp_avg_sq(),
          .learning_rate = options.lr(),
          .beta1 = std::get<0>(options.betas()),
          .beta2 = std::get<1>(options.betas()),
          .epsilon = options.eps(),
          .count = static_cast<double>(state.step())};
}

// With amsgrad a step divides by the largest second moment so far, which is not corrected.
std::optional<AdamStep> adam_step_of(const at::Tensor& parameter, torch::optim::OptimizerOptions& options,
                                     torch::optim::OptimizerParamState& state) {
  auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options);
  if (adam != nullptr && !adam->amsgrad()) {
    return adam_step(parameter, *adam, static_cast<torch::optim::AdamParamState&>(state));
  }
  auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options);
  if (adamw != nullptr && !adamw->amsgrad()) {
    return adam_step(parameter, *adamw, static_cast<torch::optim::AdamWParamState&>(state));
  }
  return std::nullopt;
}

std::vector<AdamStep> adam_steps_of(torch::optim::Optimizer& optimizer, OptionsByParameter& options,
                                    const std::vector<NamedTensor>& parameters,
                                    const std::vector<std::size_t>& wanted) {
  std::vector<AdamStep> steps;
  for (const std::size_t index : wanted) {
    const at::Tensor& parameter = parameters[index].tensor;
    torch::optim::OptimizerOptions* found = options.find(parameter);
    torch::optim::OptimizerParamState* state = state_of(optimizer, parameter);
    if (state == nullptr || found == nullptr) continue;
    if (std::optional<AdamStep> step = adam_step_of(parameter, *found, *state)) {
      step->index = index;
      steps.push_back(std::move(*step));
    }
  }
  return steps;
}

// Momentum first, Adam's second moment last.
std::vector<std::pair<std::string, at::Tensor>> tensors_of(torch::optim::OptimizerParamState& state) {
  if (auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(&state))
    return {{"momentum_buffer", sgd->momentum_buffer()}};
  if (auto* adam = dynamic_cast<torch::optim::AdamParamState*>(&state)) {
    return {{"exp_avg", adam->exp_avg()}, {"exp_avg_sq", adam->exp_avg_sq()}};
  }
  if (auto* adamw = dynamic_cast<torch::optim::AdamWParamState*>(&state)) {
    return {{"exp_avg", adamw->exp_avg()}, {"exp_avg_sq", adamw->exp_avg_sq()}};
  }
  return {};
}

OptimizerState& kind_named(std::vector<OptimizerState>& kinds, const std::string& name) {
  for (OptimizerState& kind : kinds) {
    if (kind.name == name) return kind;
  }
  return kinds.emplace_back(OptimizerState{name, {}});
}

std::vector<OptimizerState> collect_state(torch::optim::Optimizer& optimizer,
                                          const std::vector<NamedTensor>& parameters) {
  std::vector<OptimizerState> kinds;
  for (const NamedTensor& parameter : parameters) {
    torch::optim::OptimizerParamState* state = state_of(optimizer, parameter.tensor);
    if (state == nullptr) continue;
    for (auto& [name, tensor] : tensors_of(*state)) {
      if (tensor.defined()) kind_named(kinds, name).tensors.push_back({parameter.name, tensor});
    }
  }
  return kinds;
}

}  // namespace

void step_only(const std::vector<NamedTensor>& parameters, const std::vector<std::size_t>& chosen,
               const std::function<void()>& step) {
  std::vector<bool> is_chosen(parameters.size());
  for (const std::size_t index : chosen) is_chosen[index] = true;
  std::vector<std::pair<at::Tensor, at::Tensor>> aside;  // parameters and their gradients
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    at::Tensor parameter = parameters[index].tensor;
    if (is_chosen[index] || !parameter.grad().defined()) continue;
    aside.emplace_back(parameter, std::exchange(parameter.mutable_grad(), at::Tensor()));
  }
  const auto put_back = [&aside] {
    for (auto& [parameter, gradient] : aside) parameter.mutable_grad() = std::move(gradient);
  };
  try {
    step();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

Replica replica_of(torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  Replica replica;
  replica.parameters = parameters_of(model, true);
  replica.frozen = parameters_of(model, false);
  replica.buffers = buffers_of(model);
  replica.optimizer_state = [&optimizer, parameters = replica.parameters] {
    return collect_state(optimizer, parameters);
  };
  replica.normalizing = normalizing_of(optimizer);
  replica.adam_steps = [&optimizer, options = std::make_shared<OptionsByParameter>(optimizer),
                        parameters = replica.parameters](const std::vector<std::size_t>& wanted) {
    return adam_steps_of(optimizer, *options, parameters, wanted);
  };
  replica.step = [&optimizer, parameters = replica.parameters](const std::vector<std::size_t>& chosen) {
    step_only(parameters, chosen, [&optimizer] { optimizer.step(); });
  };
  replica.learning_rate = [&optimizer] { return optimizer.param_groups().front().options().get_lr(); };
  return replica;
}

}  // namespace dssync
