// Labelled images: Fashion-MNIST as Debian ships it, and a synthetic stand-in of the same shape. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <ATen/core/Tensor.h>

#include "dssync/training/data/dataset.h"

namespace dssync {

struct ImageSet final : Dataset {
  std::string name;
  int classes = 10;
  at::Tensor images;  // uint8, examples x 1 x height x width: a quarter of the memory of floats, in every worker
  at::Tensor labels;  // int64, 0..classes-1
  double mean = 0;    // of the pixels of the training set
  double deviation = 1;

  std::int64_t size() const override;
  // Inputs: float, normalized. Targets: the labels. The same in every epoch.
  Batch batch(const at::Tensor& indices, std::int64_t epoch) const override;

  // Keeps the first examples only. Throws InputError where there are not so many.
  void cut(std::int64_t examples, const std::string& what);
};

struct ImageSets {
  ImageSet train;
  ImageSet test;
};

inline constexpr int kImageSide = 28;  // pixels, of both data sets

inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

// 60,000 and 10,000 images of ten kinds of clothes, 28 x 28. Throws InputError that names the file where one is missing
// (and says how to get it), damaged, or not what it should be.
ImageSets load_fashion_mnist(const std::filesystem::path& folder = kFashionMnistFolder);

struct SyntheticOptions {
  std::int64_t train_examples = 12'000;
  std::int64_t test_examples = 2'000;
  int classes = 10;
  std::uint64_t seed = 1;
};

// Images of 28 x 28 for machines without Fashion-MNIST: smooth shapes, several per class, moved, bent, overlaid with a
// shape of another class, and noisy. A linear model gets well over half of them right, a small cnn most.
// The same options give the same images. Throws InputError where a number is not positive.
ImageSets make_synthetic(const SyntheticOptions& options = {});

}  // namespace dssync
