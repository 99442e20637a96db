// Impressions, some of which were clicked on, and whose structure is known: every value of a field has a weight, and
// every pair of fields interacts. They stand for the data of recommender systems; no file is needed. Plain values.
#pragma once

#include <cstdint>

#include "dssync/training/data/dataset.h"

namespace dssync {

inline constexpr std::int64_t kClickFields = 8;

struct ClickOptions {
  std::int64_t train_examples = 400'000;
  std::int64_t test_examples = 50'000;
  std::int64_t rows = ClickShape().rows;  // a multiple of kClickFields: all fields have as many values
  std::uint64_t seed = 1;                 // other seeds: other weights, and other impressions
};

struct ClickSet final : Dataset {
  at::Tensor rows;     // int32, impressions x fields: which row of an embedding stands for a field's value
  at::Tensor clicks;   // float, 0 or 1
  at::Tensor chances;  // float: how probable the click was. No model can rank impressions better than these do

  std::int64_t size() const override;
  // Inputs: int64 rows. Targets: clicks. The same in every epoch.
  Batch batch(const at::Tensor& indices, std::int64_t epoch) const override;
};

struct ClickSets {
  ClickSet train;
  ClickSet test;
};

// Throws InputError unless they are a multiple of kClickFields, with two values for each at least.
void check_rows(std::int64_t rows);

// A value's weight and vector are normal; the logit of a click is the sum of the weights and of the products of all
// pairs of vectors, minus 1. The same options give the same impressions. Throws InputError where a number makes no
// sense.
ClickSets make_clicks(const ClickOptions& options = {});

}  // namespace dssync
