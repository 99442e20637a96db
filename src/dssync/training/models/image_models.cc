#include "dssync/training/models/image_models.h"

#include <vector>

#include <torch/nn/functional.h>
#include <torch/nn/modules.h>
#include <torch/nn/modules/container/sequential.h>

namespace dssync {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(std::int64_t from, std::int64_t to, std::int64_t size, std::int64_t stride, bool bias) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, size).stride(stride).padding(size / 2).bias(bias));
}

// What a dimension becomes at stride 2.
std::int64_t halved(std::int64_t size) { return (size + 1) / 2; }

// A dense layer behind a rectifier.
at::Tensor rectified(nn::Linear& dense, const at::Tensor& values) { return torch::relu(dense(values.flatten(1))); }

at::Tensor plain(nn::Linear& dense, const at::Tensor& values) { return dense(values); }

class Mlp final : public Model {
 public:
  Mlp(const ImageShape& image, std::int64_t hidden) {
    add_layer("hidden", nn::Linear(image.channels * image.height * image.width, hidden), rectified);
    add_layer("narrow", nn::Linear(hidden, 64), rectified);
    add_layer("scores", nn::Linear(64, image.classes), plain);
  }
};

class Cnn final : public Model {
 public:
  explicit Cnn(const ImageShape& image) {
    add_layer("edges", convolution(image.channels, 16, 5, 2, true),
              [](nn::Conv2d& edges, const at::Tensor& images) { return torch::relu(edges(images)); });
    add_layer("parts", convolution(16, 32, 3, 1, true), [](nn::Conv2d& parts, const at::Tensor& edges) {
      return torch::relu(torch::max_pool2d(parts(edges), 2));
    });
    const std::int64_t found = 32 * (halved(image.height) / 2) * (halved(image.width) / 2);
    add_layer("hidden", nn::Linear(found, 64), rectified);
    add_layer("scores", nn::Linear(64, image.classes), plain);
  }
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
  explicit ResNet(const ImageShape& image) {
    add_layer("stem", convolution(image.channels, 16, 3, 2, false),
              [](nn::Conv2d& stem, const at::Tensor& images) { return stem(images); });
    add_layer("stem_norm", nn::BatchNorm2d(16),
              [](nn::BatchNorm2d& norm, const at::Tensor& stem) { return torch::relu(norm(stem)); });
    const std::vector<ResidualBlock> blocks{ResidualBlock(16, 16, 1), ResidualBlock(16, 16, 1),  //
                                            ResidualBlock(16, 32, 2), ResidualBlock(32, 32, 1),  //
                                            ResidualBlock(32, 64, 2), ResidualBlock(64, 64, 1)};
    nn::Sequential stages = register_module("stages", nn::Sequential());
    for (const ResidualBlock& block : blocks) {
      stages->push_back(block);
      append(block, [](ResidualBlock& residual, const at::Tensor& values) { return residual(values); });
    }
    add_layer("scores", nn::Linear(64, image.classes), [](nn::Linear& scores, const at::Tensor& values) {
      return scores(values.mean({2, 3}));
    });
  }
};

}  // namespace

std::shared_ptr<Model> make_mlp(const ImageShape& image, std::int64_t hidden) {
  return std::make_shared<Mlp>(image, hidden);
}

std::shared_ptr<Model> make_cnn(const ImageShape& image) { return std::make_shared<Cnn>(image); }

std::shared_ptr<Model> make_resnet(const ImageShape& image) { return std::make_shared<ResNet>(image); }

}  // namespace dssync
