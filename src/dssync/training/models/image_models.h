// Networks that tell the class of an image. Inputs: float, examples x channels x height x width. Scores: examples x
// classes. The models' first values are torch's own: Model::initialize() follows.
#pragma once

#include <memory>

#include "dssync/training/data/dataset.h"
#include "dssync/training/models/model.h"

namespace dssync {

// Two hidden layers, the first of them as wide as one likes.
std::shared_ptr<Model> make_mlp(const ImageShape& image, std::int64_t hidden);

// Two convolutions, two dense layers; the fastest way to 90 % on Fashion-MNIST.
std::shared_ptr<Model> make_cnn(const ImageShape& image);

// Three stages of residual blocks with BatchNorm.
std::shared_ptr<Model> make_resnet(const ImageShape& image);

}  // namespace dssync
