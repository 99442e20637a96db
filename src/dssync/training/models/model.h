// What a network is to the training loop: layers that run one after another, and their first values. Not thread-safe,
// as any torch module.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace dssync {

// One step of the forward pass: what it computes from the one before, and the module that holds its parameters.
struct Layer {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> compute;
};

class Model : public torch::nn::Module {
 public:
  // From a batch's inputs to scores, from which the targets can be told: one layer after another.
  // `before` is called before each layer; may be empty.
  using BeforeLayer = std::function<void(const Layer& layer)>;
  at::Tensor forward(const at::Tensor& inputs, const BeforeLayer& before = {}) const;

  const std::vector<Layer>& layers() const { return layers_; }

  // Draws all parameters anew. They depend on the seed alone, not on torch's global generator.
  void initialize(std::uint64_t seed);

 protected:
  // Appends a layer that computes compute(module, values). The module is registered, alone or as a part of another.
  template <typename Holder, typename Compute>
  void append(Holder module, Compute compute) {
    layers_.push_back(
        {module.ptr(), [module, compute](const at::Tensor& values) mutable { return compute(module, values); }});
  }

  // Registers the module, and appends its layer.
  template <typename Holder, typename Compute>
  void add_layer(const std::string& name, const Holder& module, Compute compute) {
    register_module(name, module);
    append(module, std::move(compute));
  }

  // Of a parameter of two dimensions or more. He's values for what multiplies, and a tenth of them for the scores, so
  // that training starts without an opinion.
  virtual double first_deviation(const std::string& name, const at::Tensor& values) const;

 private:
  std::vector<Layer> layers_;
};

}  // namespace dssync
