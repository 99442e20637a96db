// DeepFM: weights of values, products of all pairs of their vectors, and a small network on top of the same vectors.
#pragma once

#include <memory>

#include "dssync/training/data/dataset.h"
#include "dssync/training/models/model.h"

namespace dssync {

// Inputs: int64, impressions x fields, each a row of the embedding. Scores: one for each impression, the logit of a
// click. The model's first values are torch's own: initialize() follows.
std::shared_ptr<Model> make_deepfm(const ClickShape& clicks);

}  // namespace dssync
