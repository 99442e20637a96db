#include "dssync/training/models/transformer.h"

#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/functional.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kWidening = 4;  // of the dense layers of a block
constexpr double kEmbeddingDeviation = 0.05;

nn::LayerNorm norm_of(std::int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width})); }

// Symbols and where they stand.
class PlacedSymbolsImpl final : public nn::Module {
 public:
  PlacedSymbolsImpl(const TextShape& text, std::int64_t width)
      : symbols_(register_module("symbols", nn::Embedding(text.symbols, width))),
        positions_(register_parameter("positions", at::zeros({text.context, width}))) {}

  at::Tensor forward(const at::Tensor& windows) { return symbols_(windows) + positions_; }

 private:
  nn::Embedding symbols_;
  at::Tensor positions_;
};
TORCH_MODULE(PlacedSymbols);

// Every symbol asks those before it, in several ways at once.
class AttentionImpl final : public nn::Module {
 public:
  AttentionImpl(std::int64_t context, std::int64_t width, std::int64_t heads)
      : heads_(heads),
        later_(at::full({context, context}, -std::numeric_limits<float>::infinity()).triu_(1)),
        ask_(register_module("ask", nn::Linear(width, 3 * width))),
        answer_(register_module("answer", nn::Linear(width, width))) {}

  at::Tensor forward(const at::Tensor& values) {
    const std::int64_t examples = values.size(0);
    const std::int64_t context = values.size(1);
    const std::int64_t width = values.size(2);
    const std::int64_t part = width / heads_;
    const auto parts = ask_(values)
                           .view({examples, context, 3, heads_, part})
                           .permute({2, 0, 3, 1, 4})
                           .reshape({3, examples * heads_, context, part})
                           .unbind();
    const double scale = 1 / std::sqrt(static_cast<double>(part));
    const at::Tensor weights = at::softmax(at::baddbmm(later_, parts[0], parts[1].transpose(1, 2), 1, scale), -1);
    const at::Tensor found = at::bmm(weights, parts[2]).view({examples, heads_, context, part}).transpose(1, 2);
    return answer_(found.reshape({examples, context, width}));
  }

 private:
  std::int64_t heads_;
  at::Tensor later_;  // minus infinity where a symbol comes later. No buffer: there is nothing in it to save or average
  nn::Linear ask_, answer_;
};
TORCH_MODULE(Attention);

class BlockImpl final : public nn::Module {
 public:
  BlockImpl(std::int64_t context, const TransformerSize& size)
      : attention_norm_(register_module("attention_norm", norm_of(size.width))),
        attention_(register_module("attention", Attention(context, size.width, size.heads))),
        dense_norm_(register_module("dense_norm", norm_of(size.width))),
        widen_(register_module("widen", nn::Linear(size.width, kWidening * size.width))),
        narrow_(register_module("narrow", nn::Linear(kWidening * size.width, size.width))) {}

  at::Tensor forward(const at::Tensor& values) {
    const at::Tensor asked = values + attention_(attention_norm_(values));
    return asked + narrow_(at::gelu(widen_(dense_norm_(asked))));
  }

 private:
  nn::LayerNorm attention_norm_;
  Attention attention_;
  nn::LayerNorm dense_norm_;
  nn::Linear widen_, narrow_;
};
TORCH_MODULE(Block);

class Transformer final : public Model {
 public:
  Transformer(const TextShape& text, const TransformerSize& size) {
    const auto run = [](auto& module, const at::Tensor& values) { return module(values); };
    add_layer("placed", PlacedSymbols(text, size.width), run);
    for (std::int64_t block = 0; block < size.layers; ++block) {
      add_layer(fmt::format("block{}", block), Block(text.context, size), run);
    }
    add_layer("norm", norm_of(size.width), run);
    add_layer("scores", nn::Linear(size.width, text.symbols), run);
  }

 private:
  double first_deviation(const std::string& name, const at::Tensor& values) const override {
    if (name.starts_with("placed.")) return name.ends_with("positions") ? kEmbeddingDeviation / 5 : kEmbeddingDeviation;
    return 1 / std::sqrt(3 * static_cast<double>(values.size(1)));
  }
};

}  // namespace

std::shared_ptr<Model> make_transformer(const TextShape& text, const TransformerSize& size) {
  if (size.layers < 1 || size.heads < 1 || size.width < 1 || size.width % size.heads != 0) {
    throw InputError(
        fmt::format("a transformer with {} layers of width {} and {} heads: expected at least 1 of each, and "
                    "a width that the heads divide",
                    size.layers, size.width, size.heads));
  }
  return std::make_shared<Transformer>(text, size);
}

}  // namespace dssync
