#include "dssync/sync/replica.h"

#include <set>
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

Replica replica_of(torch::nn::Module& model, torch::optim::Optimizer& optimizer) {
  Replica replica;
  replica.parameters = parameters_of(model, true);
  replica.frozen = parameters_of(model, false);
  replica.buffers = buffers_of(model);
  replica.optimizer_state = [&optimizer, parameters = replica.parameters] {
    return collect_state(optimizer, parameters);
  };
  replica.learning_rate = [&optimizer] { return optimizer.param_groups().front().options().get_lr(); };
  return replica;
}

}  // namespace dssync
