// Three networks and their initial values.
#include "dssync/training/models.h"

#include <cmath>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules.h>
#include <torch/nn/modules/container/sequential.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kLeastSide = 8;

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t size, std::int64_t stride, bool bias) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(bias));
}

// What a dimension becomes at stride 2.
std::int64_t halved(std::int64_t size) { return (size + 1) / 2; }

class Mlp final : public Model {
 public:
  Mlp(const ImageShape& shape, int classes, std::int64_t hidden)
      : hidden_(register_module("hidden", nn::Linear(shape.channels * shape.height * shape.width, hidden))),
        narrow_(register_module("narrow", nn::Linear(hidden, 64))),
        scores_(register_module("scores", nn::Linear(64, classes))) {}

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor hidden = torch::relu(hidden_(images.flatten(1)));
    return scores_(torch::relu(narrow_(hidden)));
  }

 private:
  nn::Linear hidden_, narrow_, scores_;
};

class Cnn final : public Model {
 public:
  Cnn(const ImageShape& shape, int classes)
      : edges_(register_module("edges", convolution(shape.channels, 16, 5, 2, true))),
        parts_(register_module("parts", convolution(16, 32, 3, 1, true))),
        hidden_(register_module("hidden", nn::Linear(32 * (halved(shape.height) / 2) * (halved(shape.width) / 2), 64))),
        scores_(register_module("scores", nn::Linear(64, classes))) {}

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor edges = torch::relu(edges_(images));
    const at::Tensor parts = torch::relu(torch::max_pool2d(parts_(edges), 2));
    return scores_(torch::relu(hidden_(parts.flatten(1))));
  }

 private:
  nn::Conv2d edges_, parts_;
  nn::Linear hidden_, scores_;
};

// x + two convolutions of x; where the size changes, x passes a convolution of 1 x 1.
class ResidualBlockImpl final : public nn::Module {
 public:
  ResidualBlockImpl(std::int64_t from, std::int64_t to, std::int64_t stride)
      : first_(register_module("first", convolution(from, to, 3, stride, false))),
        first_norm_(register_module("first_norm", nn::BatchNorm2d(to))),
        second_(register_module("second", convolution(to, to, 3, 1, false))),
        second_norm_(register_module("second_norm", nn::BatchNorm2d(to))) {
    if (from != to || stride != 1) shortcut_ = register_module("shortcut", convolution(from, to, 1, stride, false));
  }

  at::Tensor forward(const at::Tensor& input) {
    const at::Tensor middle = torch::relu(first_norm_(first_(input)));
    const at::Tensor change = second_norm_(second_(middle));
    return torch::relu(change + (shortcut_.is_empty() ? input : shortcut_(input)));
  }

 private:
  nn::Conv2d first_;
  nn::BatchNorm2d first_norm_;
  nn::Conv2d second_;
  nn::BatchNorm2d second_norm_;
  nn::Conv2d shortcut_{nullptr};
};
TORCH_MODULE(ResidualBlock);

class ResNet final : public Model {
 public:
  ResNet(const ImageShape& shape, int classes)
      : stem_(register_module("stem", convolution(shape.channels, 16, 3, 2, false))),
        stem_norm_(register_module("stem_norm", nn::BatchNorm2d(16))),
        stages_(register_module("stages", nn::Sequential(ResidualBlock(16, 16, 1), ResidualBlock(16, 16, 1),  //
                                                         ResidualBlock(16, 32, 2), ResidualBlock(32, 32, 1),  //
                                                         ResidualBlock(32, 64, 2), ResidualBlock(64, 64, 1)))),
        scores_(register_module("scores", nn::Linear(64, classes))) {}

  at::Tensor forward(const at::Tensor& images) override {
    const at::Tensor stem = torch::relu(stem_norm_(stem_(images)));
    return scores_(stages_->forward(stem).mean({2, 3}));
  }

 private:
  nn::Conv2d stem_;
  nn::BatchNorm2d stem_norm_;
  nn::Sequential stages_;
  nn::Linear scores_;
};

// He's normal values for what multiplies, a tenth of them for the scores, so that training starts without an opinion;
// BatchNorm starts as the identity (torch's default), biases at 0.
void initialize(nn::Module& model, std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  // Several workers may be threads of one process, so the global generator is nobody's own.
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (const auto& item : model.named_parameters()) {
    at::Tensor values = item.value();
    if (values.dim() > 1) {
      const double inputs = static_cast<double>(values.numel()) / static_cast<double>(values.size(0));
      const double scale = item.key() == "scores.weight" ? 0.1 : 1;
      values.normal_(0, scale * std::sqrt(2 / inputs), generator);
    } else if (item.key().ends_with("bias")) {
      values.zero_();
    }
  }
}

std::shared_ptr<Model> build(const std::string& name, const ImageShape& shape, int classes, std::int64_t hidden) {
  if (name == "mlp") return std::make_shared<Mlp>(shape, classes, hidden);
  if (name == "cnn") return std::make_shared<Cnn>(shape, classes);
  if (name == "resnet") return std::make_shared<ResNet>(shape, classes);
  throw InputError(fmt::format("model {}: expected one of {}", quote(name), fmt::join(model_names(), ", ")));
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names{"mlp", "cnn", "resnet"};
  return names;
}

std::shared_ptr<Model> make_model(const std::string& name, std::uint64_t seed, const ImageShape& shape, int classes,
                                  std::int64_t hidden) {
  if (shape.height < kLeastSide || shape.width < kLeastSide) {
    throw InputError(
        fmt::format("images of {} x {}: expected at least {} x {}", shape.height, shape.width, kLeastSide, kLeastSide));
  }
  auto model = build(name, shape, classes, hidden);
  initialize(*model, seed);
  return model;
}

std::int64_t parameter_count(const nn::Module& model) {
  std::int64_t count = 0;
  for (const at::Tensor& values : model.parameters()) count += values.numel();
  return count;
}

}  // namespace dssync
