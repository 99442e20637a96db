// The images of the synthetic data set. Immutable once made; the same numbers give the same images.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/training/data/images.h"

namespace dssync {

class Random;

class SyntheticImages {
 public:
  SyntheticImages(int classes, std::uint64_t seed);

  // So many examples; other streams give other examples of the same classes.
  ImageSet draw(std::int64_t examples, std::uint64_t stream) const;

 private:
  // A smooth random shape, somewhat larger than an image so that it can be moved.
  struct Shape {
    std::vector<float> values;
    float at(double x, double y) const;
  };

  static Shape random_shape(Random& random);
  const Shape& any_shape(int label, Random& random) const;
  void draw_image(int label, Random& random, std::uint8_t* pixels) const;

  int classes_;
  std::uint64_t seed_;
  std::vector<Shape> shapes_;  // kShapesPerClass of class 0, then of class 1, ...
};

}  // namespace dssync
