// A decoder: from each symbol of a window, the next one is told from it and those before it.
#pragma once

#include <memory>

#include "dssync/training/data/dataset.h"
#include "dssync/training/models/model.h"

namespace dssync {

struct TransformerSize {
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 4;
};

// Embeddings with learned positions; blocks of attention and of two dense layers, each behind a LayerNorm and added to
// its input; a LayerNorm; scores. Inputs: int64, examples x context. Scores: examples x context x symbols.
// Throws InputError unless the heads divide the width. The model's first values are torch's own: initialize() follows.
std::shared_ptr<Model> make_transformer(const TextShape& text, const TransformerSize& size);

}  // namespace dssync
