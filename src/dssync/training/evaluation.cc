#include "dssync/training/evaluation.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>
#include <torch/nn/functional/loss.h>

namespace dssync {
namespace {

using nlohmann::json;

// Larger ones gain little, and need memory in every worker.
constexpr std::int64_t kBatch = 250;

class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model) { model_.eval(); }
  ~EvaluationMode() { model_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
};

// JSON has no number for what is none.
double number_in(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::string text_of_score(const Score& score) {
  return json{score.examples, score.correct, score.loss, score.disagreement}.dump();
}

Score score_in(const std::string& text) {
  const json values = json::parse(text);
  return {values.at(0).get<std::int64_t>(), values.at(1).get<std::int64_t>(), number_in(values.at(2)),
          number_in(values.at(3))};
}

}  // namespace

Score evaluate(Model& model, const Dataset& test, std::int64_t first, std::int64_t last) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  namespace functional = torch::nn::functional;
  Score score;
  for (std::int64_t start = first; start < last; start += kBatch) {
    const Batch batch = test.range(start, std::min(last, start + kBatch));
    const at::Tensor scores = model.forward(batch.images);
    const auto options = functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    score.loss += functional::cross_entropy(scores, batch.labels, options).item<double>();
    score.correct += scores.argmax(1).eq(batch.labels).sum().item<std::int64_t>();
    score.examples += batch.labels.size(0);
  }
  return score;
}

Share share_of(std::int64_t examples, int rank, int workers) {
  return {examples * rank / workers, examples * (rank + 1) / workers};
}

Score add_up(Exchange& exchange, const Score& own) {
  Score sum;
  // In the order of the ranks, so that the sum is the same every time.
  for (const std::string& text : exchange.gather("evaluation", text_of_score(own))) {
    const Score part = score_in(text);
    sum.examples += part.examples;
    sum.correct += part.correct;
    sum.loss += part.loss;
    sum.disagreement += part.disagreement;
  }
  return score_in(exchange.broadcast("evaluation result", text_of_score(sum)));
}

}  // namespace dssync
