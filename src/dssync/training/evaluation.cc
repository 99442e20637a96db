#include "dssync/training/evaluation.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

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
  return json{score.targets, score.correct, score.loss, score.disagreement, score.area ? json(*score.area) : json()}
      .dump();
}

Score score_in(const std::string& text) {
  const json values = json::parse(text);
  Score score{values.at(0).get<std::int64_t>(),
              values.at(1).get<std::int64_t>(),
              number_in(values.at(2)),
              number_in(values.at(3)),
              {},
              {}};
  if (!values.at(4).is_null()) score.area = values.at(4).get<double>();
  return score;
}

void rank(RankedScores& ranked, const at::Tensor& scores, const at::Tensor& targets) {
  const at::Tensor values = scores.contiguous();
  const at::Tensor expected = targets.contiguous();
  for (std::int64_t at = 0; at < values.numel(); ++at) {
    const bool is_positive = expected.data_ptr<float>()[at] > 0.5F;
    (is_positive ? ranked.positive : ranked.negative).push_back(values.data_ptr<float>()[at]);
  }
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void append_floats(std::vector<float>& values, const std::string& bytes) {
  const std::size_t before = values.size();
  values.resize(before + bytes.size() / sizeof(float));
  std::memcpy(values.data() + before, bytes.data(), (values.size() - before) * sizeof(float));
}

// Collective. Rank 0 gets the area, the others 0.5.
double area_of_all(Exchange& exchange, const RankedScores& own) {
  RankedScores all;
  for (const std::string& bytes : exchange.gather("positive scores", bytes_of(own.positive))) {
    append_floats(all.positive, bytes);
  }
  for (const std::string& bytes : exchange.gather("negative scores", bytes_of(own.negative))) {
    append_floats(all.negative, bytes);
  }
  return area_under_curve(std::move(all));
}

}  // namespace

Score evaluate(Model& model, const Task& task, const Dataset& test, std::int64_t first, std::int64_t last) {
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  Score score;
  for (std::int64_t start = first; start < last; start += kBatch) {
    const Batch batch = test.range(start, std::min(last, start + kBatch));
    const at::Tensor scores = model.forward(batch.inputs);
    const std::int64_t targets = batch.targets.numel();
    score.loss += task.loss(scores, batch.targets).item<double>() * static_cast<double>(targets);
    score.correct += task.is_told(scores, batch.targets).sum().item<std::int64_t>();
    score.targets += targets;
    if (task.is_ranking) rank(score.ranked, scores, batch.targets);
  }
  return score;
}

Share share_of(std::int64_t examples, int rank, int workers) {
  return {examples * rank / workers, examples * (rank + 1) / workers};
}

Score add_up(Exchange& exchange, const Score& own, const Task& task) {
  Score sum;
  // In the order of the ranks, so that the sum is the same every time.
  for (const std::string& text : exchange.gather("evaluation", text_of_score(own))) {
    const Score part = score_in(text);
    sum.targets += part.targets;
    sum.correct += part.correct;
    sum.loss += part.loss;
    sum.disagreement += part.disagreement;
  }
  if (task.is_ranking) sum.area = area_of_all(exchange, own.ranked);
  return score_in(exchange.broadcast("evaluation result", text_of_score(sum)));
}

}  // namespace dssync
