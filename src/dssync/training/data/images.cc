// Reading, measuring and cutting; the synthetic images are made in synthetic.cc.
#include "dssync/training/data/images.h"

#include <array>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/data/idx_file.h"
#include "dssync/training/data/synthetic.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;

constexpr int kClasses = 10;

at::Tensor read_part(const fs::path& file, const std::vector<std::int64_t>& dimensions) {
  std::error_code unknown;
  if (!fs::exists(file, unknown)) {
    throw InputError(file, 0,
                     "there is no such file. Fashion-MNIST comes with `apt install dataset-fashion-mnist`; "
                     "`--data synthetic` needs no file");
  }
  return read_idx(file, dimensions);
}

ImageSet read_set(const fs::path& folder, const std::string& prefix) {
  const fs::path label_file = folder / (prefix + "-labels-idx1-ubyte.gz");
  ImageSet set;
  set.name = "fashion-mnist";
  set.classes = kClasses;
  set.images = read_part(folder / (prefix + "-images-idx3-ubyte.gz"), {-1, kImageSide, kImageSide}).unsqueeze(1);
  set.labels = read_part(label_file, {-1}).to(at::kLong);
  if (set.labels.size(0) != set.images.size(0)) {
    throw InputError(label_file, 0, fmt::format("has {} labels for {} images", set.labels.size(0), set.images.size(0)));
  }
  const auto highest = set.labels.max().item<std::int64_t>();
  if (highest >= kClasses) throw InputError(label_file, 0, fmt::format("label {}, expected 0 to 9", highest));
  return set;
}

// Sets mean and deviation from the training images. By a histogram: floats would need four times the memory.
void measure_pixels(ImageSets& sets) {
  std::array<std::int64_t, 256> counts{};
  const auto* pixels = sets.train.images.data_ptr<std::uint8_t>();
  const std::int64_t total = sets.train.images.numel();
  for (std::int64_t at = 0; at < total; ++at) ++counts[pixels[at]];
  double sum = 0;
  double squares = 0;
  for (int value = 0; value < 256; ++value) {
    const auto count = static_cast<double>(counts[static_cast<std::size_t>(value)]);
    sum += count * value;
    squares += count * value * value;
  }
  const double mean = sum / static_cast<double>(total);
  const double variance = squares / static_cast<double>(total) - mean * mean;
  for (ImageSet* set : {&sets.train, &sets.test}) {
    set->mean = mean;
    set->deviation = variance > 0 ? std::sqrt(variance) : 1;
  }
}

}  // namespace

std::int64_t ImageSet::size() const { return labels.size(0); }

Batch ImageSet::batch(const at::Tensor& indices, std::int64_t /*epoch*/) const {
  return {images.index_select(0, indices).to(at::kFloat).sub_(mean).div_(deviation), labels.index_select(0, indices)};
}

void ImageSet::cut(std::int64_t examples, const std::string& what) {
  if (examples == 0) return;
  if (examples < 0 || examples > size()) {
    throw InputError(fmt::format("{} {} examples of {} were asked for; it has {}", examples, what, name, size()));
  }
  images = images.slice(0, 0, examples).clone();
  labels = labels.slice(0, 0, examples).clone();
}

ImageSets load_fashion_mnist(const fs::path& folder) {
  ImageSets sets{read_set(folder, "train"), read_set(folder, "t10k")};
  measure_pixels(sets);
  return sets;
}

ImageSets make_synthetic(const SyntheticOptions& options) {
  if (options.train_examples < 1 || options.test_examples < 1 || options.classes < 2) {
    throw InputError(
        fmt::format("synthetic data: {} training examples, {} test examples and {} classes; expected at "
                    "least 1, 1 and 2",
                    options.train_examples, options.test_examples, options.classes));
  }
  const SyntheticImages images(options.classes, options.seed);
  ImageSets sets{images.draw(options.train_examples, 1), images.draw(options.test_examples, 2)};
  measure_pixels(sets);
  return sets;
}

}  // namespace dssync
