#include "dssync/training/models/deepfm.h"

#include <ATen/ATen.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

namespace dssync {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kVectorSize = 4;
constexpr std::int64_t kDeepUnits = 32;
constexpr double kRowDeviation = 0.1;

// From the embedded fields, each a weight and a vector, to the score.
class FactorsImpl final : public nn::Module {
 public:
  explicit FactorsImpl(std::int64_t fields)
      : hidden_(register_module("hidden", nn::Linear(fields * kVectorSize, kDeepUnits))),
        deep_(register_module("deep", nn::Linear(kDeepUnits, 1))) {}

  at::Tensor forward(const at::Tensor& embedded) {
    const at::Tensor vectors = embedded.slice(2, 1);
    // Half of (the square of the sum, less the sum of squares) is the sum over all pairs.
    const at::Tensor pairs = (vectors.sum(1).square() - vectors.square().sum(1)).sum(1) / 2;
    const at::Tensor deep = deep_(torch::relu(hidden_(vectors.flatten(1)))).squeeze(1);
    return embedded.select(2, 0).sum(1) + pairs + deep;
  }

 private:
  nn::Linear hidden_, deep_;
};
TORCH_MODULE(Factors);

class DeepFm final : public Model {
 public:
  explicit DeepFm(const ClickShape& clicks) {
    const auto run = [](auto& module, const at::Tensor& values) { return module(values); };
    add_layer("rows", nn::Embedding(clicks.rows, 1 + kVectorSize), run);
    add_layer("factors", Factors(clicks.fields), run);
  }

 private:
  double first_deviation(const std::string& name, const at::Tensor& values) const override {
    return name == "rows.weight" ? kRowDeviation : Model::first_deviation(name, values);
  }
};

}  // namespace

std::shared_ptr<Model> make_deepfm(const ClickShape& clicks) { return std::make_shared<DeepFm>(clicks); }

}  // namespace dssync
