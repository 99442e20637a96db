// Each image shows a shape of its class, shifted, bent and of varying contrast, under a fainter shape of another class
// and noise. That the shapes move is what a linear model cannot follow.
#include "dssync/training/data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include "dssync/training/data/random.h"

namespace dssync {
namespace {

constexpr int kMargin = 8;  // how far a shape may be moved, bending included
constexpr int kFieldSide = kImageSide + 2 * kMargin;
constexpr int kShapesPerClass = 2;
constexpr int kBlobs = 9;
constexpr double kMostShift = 4;
constexpr double kMostBend = 2;
constexpr double kNoise = 0.9;
constexpr double kContrast = 42;  // grey levels per standard deviation of a shape

constexpr std::size_t field_index(int x, int y) { return static_cast<std::size_t>(y * kFieldSide + x); }

struct Blob {
  double x, y, width, height;
};

Blob random_blob(Random& random) {
  return {random.between(kMargin, kMargin + kImageSide), random.between(kMargin, kMargin + kImageSide),
          random.between(2.5, 6), random.between(-1.5, 1.5)};
}

// Mean 0, variance 1.
void standardize(std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += value * value;
  }
  const double mean = sum / static_cast<double>(values.size());
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()) - mean * mean);
  for (float& value : values) value = static_cast<float>((value - mean) / deviation);
}

}  // namespace

SyntheticImages::SyntheticImages(int classes, std::uint64_t seed) : classes_(classes), seed_(seed) {
  Random random(seed);
  for (int shape = 0; shape < classes * kShapesPerClass; ++shape) shapes_.push_back(random_shape(random));
}

// Between the four pixels around. REQUIRES: 0 <= x, y < kFieldSide - 1.
float SyntheticImages::Shape::at(double x, double y) const {
  const int left = static_cast<int>(x);
  const int top = static_cast<int>(y);
  const auto across = static_cast<float>(x - left);
  const auto down = static_cast<float>(y - top);
  const float* upper = &values[field_index(left, top)];
  const float* lower = upper + kFieldSide;
  return (1 - down) * ((1 - across) * upper[0] + across * upper[1]) +
         down * ((1 - across) * lower[0] + across * lower[1]);
}

SyntheticImages::Shape SyntheticImages::random_shape(Random& random) {
  std::array<Blob, kBlobs> blobs{};
  for (Blob& blob : blobs) blob = random_blob(random);
  Shape shape;
  shape.values.resize(kFieldSide * kFieldSide);
  for (int y = 0; y < kFieldSide; ++y) {
    for (int x = 0; x < kFieldSide; ++x) {
      double value = 0;
      for (const Blob& blob : blobs) {
        const double distance = ((x - blob.x) * (x - blob.x) + (y - blob.y) * (y - blob.y)) / (blob.width * blob.width);
        value += blob.height * std::exp(-distance);
      }
      shape.values[field_index(x, y)] = static_cast<float>(value);
    }
  }
  standardize(shape.values);
  return shape;
}

const SyntheticImages::Shape& SyntheticImages::any_shape(int label, Random& random) const {
  return shapes_[static_cast<std::size_t>(label) * kShapesPerClass + random.below(kShapesPerClass)];
}

void SyntheticImages::draw_image(int label, Random& random, std::uint8_t* pixels) const {
  const int other = static_cast<int>(
      (static_cast<std::uint64_t>(label) + 1 + random.below(static_cast<std::uint64_t>(classes_) - 1)) %
      static_cast<std::uint64_t>(classes_));
  const Shape& shape = any_shape(label, random);
  const Shape& overlaid = any_shape(other, random);
  const double shift_x = kMargin + random.between(-kMostShift, kMostShift);
  const double shift_y = kMargin + random.between(-kMostShift, kMostShift);
  const double contrast = random.between(0.6, 1.4);
  const double faint = random.between(0.1, 0.6);
  const double bend = random.between(0, kMostBend);
  const double wave = 2 * std::numbers::pi / random.between(14, 40);
  const double phase = random.between(0, 2 * std::numbers::pi);
  std::array<double, kImageSide> bent{};
  for (int at = 0; at < kImageSide; ++at) bent[static_cast<std::size_t>(at)] = bend * std::sin(wave * at + phase);
  for (int y = 0; y < kImageSide; ++y) {
    for (int x = 0; x < kImageSide; ++x) {
      const double own =
          shape.at(x + shift_x + bent[static_cast<std::size_t>(y)], y + shift_y + bent[static_cast<std::size_t>(x)]);
      const double value = contrast * own + faint * overlaid.values[field_index(x + kMargin, y + kMargin)];
      const double grey = 128 + kContrast * (value + kNoise * random.noise());
      *pixels++ = static_cast<std::uint8_t>(std::clamp(grey, 0.0, 255.0));
    }
  }
}

ImageSet SyntheticImages::draw(std::int64_t examples, std::uint64_t stream) const {
  Random random(seed_, stream);
  ImageSet set;
  set.name = "synthetic";
  set.classes = classes_;
  set.images = at::empty({examples, 1, kImageSide, kImageSide}, at::kByte);
  set.labels = at::empty({examples}, at::kLong);
  auto* pixels = set.images.data_ptr<std::uint8_t>();
  auto* labels = set.labels.data_ptr<std::int64_t>();
  for (std::int64_t example = 0; example < examples; ++example) {
    const int label = static_cast<int>(random.below(static_cast<std::uint64_t>(classes_)));
    labels[example] = label;
    draw_image(label, random, pixels + example * kImageSide * kImageSide);
  }
  return set;
}

}  // namespace dssync
