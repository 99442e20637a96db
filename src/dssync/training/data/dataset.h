// A set of examples, whatever they are of: the training loop knows nothing else of data. A data set is not changed once
// it is made, so that threads may share it.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include <ATen/core/Tensor.h>

namespace dssync {

struct Batch {
  at::Tensor inputs;   // what the model is given, examples first
  at::Tensor targets;  // what it should find
};

// What one example looks like: what a model has to be made for.
struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  int classes = 10;
};
struct TextShape {
  std::int64_t symbols = 128;
  std::int64_t context = 64;  // symbols in a window
};
struct ClickShape {
  std::int64_t fields = 8;
  std::int64_t rows = 240;  // of the embedding: values of all fields together
};
using ExampleShape = std::variant<ImageShape, TextShape, ClickShape>;

class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::int64_t size() const = 0;

  // Those examples as they are in that epoch: a set may show them differently every time.
  // REQUIRES: int64 indices below size().
  virtual Batch batch(const at::Tensor& indices, std::int64_t epoch) const = 0;

  // Examples first..last-1, as they are in the first epoch.
  Batch range(std::int64_t first, std::int64_t last) const;
};

struct Datasets {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

}  // namespace dssync
