#include "dssync/training/data/clicks.h"

#include <array>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/data/random.h"

namespace dssync {
namespace {

constexpr std::size_t kTruthRank = 4;
constexpr double kTruthWeights = 0.4;  // standard deviations
constexpr double kTruthVectors = 0.35;
constexpr double kTruthBias = -1;  // more are passed over than clicked on

// Where the clicks come from.
class ClickTruth {
 public:
  ClickTruth(std::int64_t rows, std::uint64_t seed) : values_(static_cast<std::size_t>(rows)) {
    Random random(seed);
    for (Value& value : values_) {
      value.weight = kTruthWeights * random.noise();
      for (double& part : value.vector) part = kTruthVectors * random.noise();
    }
  }

  ClickSet draw(std::int64_t examples, Random random) const {
    const auto values_per_field = static_cast<std::int64_t>(values_.size()) / kClickFields;
    ClickSet set;
    set.rows = at::empty({examples, kClickFields}, at::kInt);
    set.clicks = at::empty({examples}, at::kFloat);
    set.chances = at::empty({examples}, at::kFloat);
    auto* rows = set.rows.data_ptr<std::int32_t>();
    for (std::int64_t example = 0; example < examples; ++example, rows += kClickFields) {
      for (std::int64_t field = 0; field < kClickFields; ++field) {
        const auto value = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(values_per_field)));
        rows[field] = static_cast<std::int32_t>(field * values_per_field + value);
      }
      const double chance = 1 / (1 + std::exp(-logit(rows)));
      set.chances.data_ptr<float>()[example] = static_cast<float>(chance);
      set.clicks.data_ptr<float>()[example] = random.between(0, 1) < chance ? 1 : 0;
    }
    return set;
  }

 private:
  struct Value {
    double weight = 0;
    std::array<double, kTruthRank> vector{};
  };

  // Half of (the square of the sum, less the sum of squares) is the sum over all pairs.
  double logit(const std::int32_t* rows) const {
    double result = kTruthBias;
    std::array<double, kTruthRank> sums{};
    for (std::int64_t field = 0; field < kClickFields; ++field) {
      const Value& value = values_[static_cast<std::size_t>(rows[field])];
      result += value.weight;
      for (std::size_t part = 0; part < kTruthRank; ++part) {
        sums[part] += value.vector[part];
        result -= value.vector[part] * value.vector[part] / 2;
      }
    }
    for (const double sum : sums) result += sum * sum / 2;
    return result;
  }

  std::vector<Value> values_;  // by row
};

}  // namespace

std::int64_t ClickSet::size() const { return clicks.size(0); }

Batch ClickSet::batch(const at::Tensor& indices, std::int64_t /*epoch*/) const {
  return {rows.index_select(0, indices).to(at::kLong), clicks.index_select(0, indices)};
}

void check_rows(std::int64_t rows) {
  if (rows >= 2 * kClickFields && rows % kClickFields == 0) return;
  throw InputError(fmt::format("clicks: {} rows; expected a multiple of {}, for its fields, of at least {}", rows,
                               kClickFields, 2 * kClickFields));
}

ClickSets make_clicks(const ClickOptions& options) {
  if (options.train_examples < 1 || options.test_examples < 1) {
    throw InputError(fmt::format("clicks: {} training examples and {} test examples; expected at least 1",
                                 options.train_examples, options.test_examples));
  }
  check_rows(options.rows);
  const ClickTruth truth(options.rows, options.seed);
  return {truth.draw(options.train_examples, Random(options.seed, 1)),
          truth.draw(options.test_examples, Random(options.seed, 2))};
}

}  // namespace dssync
