#include "dssync/training/models/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/training/models/deepfm.h"
#include "dssync/training/models/image_models.h"

namespace dssync {
namespace {

constexpr std::int64_t kLeastSide = 8;

using Make = std::shared_ptr<Model> (*)(const ModelOptions&, const ExampleShape&);

const ImageShape& image_of(const ExampleShape& shape) {
  const ImageShape& image = std::get<ImageShape>(shape);
  if (image.height < kLeastSide || image.width < kLeastSide) {
    throw InputError(
        fmt::format("images of {} x {}: expected at least {} x {}", image.height, image.width, kLeastSide, kLeastSide));
  }
  return image;
}

struct Kind {
  const char* name;
  std::size_t shape;  // the alternative of ExampleShape that it is made for
  Make make;
};

template <typename Shape>
constexpr std::size_t kIndexOf = ExampleShape(Shape()).index();

constexpr Kind kKinds[] = {
    {"mlp", kIndexOf<ImageShape>,
     [](const auto& options, const auto& shape) { return make_mlp(image_of(shape), options.hidden); }},
    {"cnn", kIndexOf<ImageShape>, [](const auto&, const auto& shape) { return make_cnn(image_of(shape)); }},
    {"resnet", kIndexOf<ImageShape>, [](const auto&, const auto& shape) { return make_resnet(image_of(shape)); }},
    {"transformer", kIndexOf<TextShape>,
     [](const auto& options, const auto& shape) {
       return make_transformer(std::get<TextShape>(shape), options.transformer);
     }},
    {"deepfm", kIndexOf<ClickShape>,
     [](const auto&, const auto& shape) { return make_deepfm(std::get<ClickShape>(shape)); }},
};

constexpr const char* kShapeNames[] = {"images", "text", "clicks"};
static_assert(std::size(kShapeNames) == std::variant_size_v<ExampleShape>);

const Kind& kind_named(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  throw InputError(fmt::format("model {}: expected one of {}", quote(name), fmt::join(model_names(), ", ")));
}

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

void check_fit(const std::string& model, const ExampleShape& shape) {
  const Kind& kind = kind_named(model);
  if (kind.shape == shape.index()) return;
  throw InputError(fmt::format("model {} is made for {}, and the data is {}", model, kShapeNames[kind.shape],
                               kShapeNames[shape.index()]));
}

std::shared_ptr<Model> make_model(const ModelOptions& options, std::uint64_t seed, const ExampleShape& shape) {
  check_fit(options.name, shape);
  auto model = kind_named(options.name).make(options, shape);
  model->initialize(seed);
  return model;
}

std::int64_t parameter_count(const torch::nn::Module& model) {
  std::int64_t count = 0;
  for (const at::Tensor& values : model.parameters()) count += values.numel();
  return count;
}

}  // namespace dssync
