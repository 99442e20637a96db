// torch's own way to save an optimizer depends on the order of its parameters and writes options, too; here the state
// is named for its parameters, as the runtime names it.
#include "dssync/training/optimizers.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

namespace optim = torch::optim;

// What is remembered of one parameter, by its kind.
using Memory = std::map<std::string, at::Tensor>;

// How an optimizer's state is found by its parameter.
auto state_key(const at::Tensor& parameter) {
#if TORCH_VERSION_MAJOR >= 2
  return static_cast<void*>(parameter.unsafeGetTensorImpl());
#else
  return c10::guts::to_string(parameter.unsafeGetTensorImpl());
#endif
}

void check(const OptimizerSettings& settings) {
  default_learning_rate(settings.name);
  const auto expect = [](bool right, const char* what, double value, const char* expected) {
    if (!right) throw InputError(fmt::format("{} {}: expected {}", what, value, expected));
  };
  expect(settings.learning_rate > 0 && std::isfinite(settings.learning_rate), "learning rate", settings.learning_rate,
         "a number above 0");
  expect(settings.momentum >= 0 && settings.momentum < 1, "momentum", settings.momentum, "at least 0 and below 1");
  for (const double beta : {settings.betas.first, settings.betas.second}) {
    expect(beta >= 0 && beta < 1, "beta", beta, "at least 0 and below 1");
  }
  expect(settings.weight_decay >= 0 && std::isfinite(settings.weight_decay), "weight decay", settings.weight_decay,
         "a number of at least 0");
}

template <typename Options>
Options with_betas(Options options, const Betas& betas) {
  options.betas(std::tuple(betas.first, betas.second));
  return options;
}

// Adam's and AdamW's have the same members, and no type in common.
template <typename State>
Memory adam_memory(const State& state) {
  return {{"step", at::scalar_tensor(state.step(), at::kLong)},
          {"exp_avg", state.exp_avg()},
          {"exp_avg_sq", state.exp_avg_sq()}};
}

Memory memory_of(const optim::OptimizerParamState& state) {
  if (const auto* sgd = dynamic_cast<const optim::SGDParamState*>(&state)) {
    if (!sgd->momentum_buffer().defined()) return {};
    return {{"momentum_buffer", sgd->momentum_buffer()}};
  }
  if (const auto* adam = dynamic_cast<const optim::AdamParamState*>(&state)) return adam_memory(*adam);
  if (const auto* adamw = dynamic_cast<const optim::AdamWParamState*>(&state)) return adam_memory(*adamw);
  throw Error("the state of this optimizer cannot be saved: expected SGD, Adam or AdamW");
}

at::Tensor taken(const Memory& memory, const std::string& kind, const at::Tensor& like) {
  const auto found = memory.find(kind);
  if (found == memory.end()) throw Error(fmt::format("the saved state of the optimizer has no {}", quote(kind)));
  const at::Tensor& tensor = found->second;
  if (like.defined() && (tensor.sizes() != like.sizes() || tensor.scalar_type() != like.scalar_type())) {
    throw Error(fmt::format("the saved {} of the optimizer has another shape or type than its parameter", quote(kind)));
  }
  return tensor.clone();
}

template <typename State>
std::unique_ptr<State> adam_state(const Memory& memory, const at::Tensor& parameter) {
  auto state = std::make_unique<State>();
  state->step(taken(memory, "step", {}).template item<std::int64_t>());
  state->exp_avg(taken(memory, "exp_avg", parameter));
  state->exp_avg_sq(taken(memory, "exp_avg_sq", parameter));
  return state;
}

std::unique_ptr<optim::OptimizerParamState> state_from(const optim::Optimizer& optimizer, const Memory& memory,
                                                       const at::Tensor& parameter) {
  if (dynamic_cast<const optim::SGD*>(&optimizer) != nullptr) {
    auto state = std::make_unique<optim::SGDParamState>();
    state->momentum_buffer(taken(memory, "momentum_buffer", parameter));
    return state;
  }
  if (dynamic_cast<const optim::Adam*>(&optimizer) != nullptr) {
    return adam_state<optim::AdamParamState>(memory, parameter);
  }
  if (dynamic_cast<const optim::AdamW*>(&optimizer) != nullptr) {
    return adam_state<optim::AdamWParamState>(memory, parameter);
  }
  throw Error("the state of this optimizer cannot be restored: expected SGD, Adam or AdamW");
}

}  // namespace

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names{"sgd", "adam", "adamw"};
  return names;
}

int states_per_parameter(const OptimizerSettings& settings) {
  if (settings.name != "sgd") return 2;
  return settings.momentum > 0 ? 1 : 0;
}

double default_learning_rate(const std::string& optimizer) {
  if (optimizer == "sgd") return 0.1;
  if (optimizer == "adam" || optimizer == "adamw") return 0.002;
  throw InputError(
      fmt::format("optimizer {}: expected one of {}", quote(optimizer), fmt::join(optimizer_names(), ", ")));
}

std::unique_ptr<optim::Optimizer> make_optimizer(const OptimizerSettings& settings, const torch::nn::Module& model) {
  check(settings);
  const double rate = settings.learning_rate;
  if (settings.name == "adamw") {
    const auto options = optim::AdamWOptions(rate).weight_decay(settings.weight_decay);
    return std::make_unique<optim::AdamW>(model.parameters(), with_betas(options, settings.betas));
  }
  if (settings.name == "adam") {
    const auto options = optim::AdamOptions(rate).weight_decay(settings.weight_decay);
    return std::make_unique<optim::Adam>(model.parameters(), with_betas(options, settings.betas));
  }
  return std::make_unique<optim::SGD>(
      model.parameters(), optim::SGDOptions(rate).momentum(settings.momentum).weight_decay(settings.weight_decay));
}

void set_learning_rate(optim::Optimizer& optimizer, double learning_rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate);
}

std::vector<OptimizerState> saved_state(const torch::nn::Module& model, optim::Optimizer& optimizer) {
  std::map<std::string, std::vector<NamedTensor>> by_kind;
  for (const auto& parameter : model.named_parameters()) {
    const auto found = optimizer.state().find(state_key(parameter.value()));
    if (found == optimizer.state().end()) continue;
    for (const auto& [kind, tensor] : memory_of(*found->second)) {
      by_kind[kind].push_back({parameter.key(), tensor.detach().clone()});
    }
  }
  std::vector<OptimizerState> saved;
  for (auto& [kind, tensors] : by_kind) saved.push_back({kind, std::move(tensors)});
  return saved;
}

void restore_state(const torch::nn::Module& model, optim::Optimizer& optimizer,
                   const std::vector<OptimizerState>& saved) {
  std::map<std::string, Memory> by_parameter;
  for (const OptimizerState& state : saved) {
    for (const NamedTensor& item : state.tensors) by_parameter[item.name][state.name] = item.tensor;
  }
  for (const auto& parameter : model.named_parameters()) {
    const auto found = by_parameter.find(parameter.key());
    if (found == by_parameter.end()) continue;
    optimizer.state()[state_key(parameter.value())] = state_from(optimizer, found->second, parameter.value());
    by_parameter.erase(found);
  }
  if (!by_parameter.empty()) {
    throw Error(fmt::format("the saved state of the optimizer is of {}, which the model does not have",
                            quote(by_parameter.begin()->first)));
  }
}

}  // namespace dssync
