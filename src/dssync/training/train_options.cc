#include "dssync/training/train_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/training/data/clicks.h"

namespace dssync {
namespace {

template <typename Value>
void expect(bool right, const char* option, const Value& value, const char* expected) {
  if (!right) throw InputError(fmt::format("{} {}: expected {}", option, value, expected));
}

void expect_one_of(const char* option, const std::string& value, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), value) == names.end()) {
    throw InputError(fmt::format("{} {}: expected one of {}", option, quote(value), fmt::join(names, ", ")));
  }
}

void check_lengths(const TrainOptions& options) {
  if (options.epochs) expect(*options.epochs >= 1, "epochs", *options.epochs, "at least 1");
  expect(options.max_iterations >= 0, "iterations", options.max_iterations, "at least 1, or 0 for no limit");
  if (const auto& warmup = options.warmup_epochs) {
    expect(*warmup >= 0 && std::isfinite(*warmup), "warm-up epochs", *warmup, "a number of at least 0");
  }
  if (const auto& warmup = options.warmup_iterations) {
    expect(*warmup >= 0, "warm-up iterations", *warmup, "at least 0");
    if (options.warmup_epochs)
      throw InputError("the warm-up is given in epochs and in iterations: expected one of them");
  }
  expect(options.evaluate_every >= 0, "evaluation every", options.evaluate_every, "at least 1 epoch, or 0 for the end");
  expect(options.evaluate_every_iterations >= 0, "evaluation every", options.evaluate_every_iterations,
         "at least 1 iteration, or 0 for none");
}

}  // namespace

void check(const TrainOptions& options) {
  const DataOptions& data = options.data;
  check_fit(options.model.name, shape_of(data));
  expect(options.model.hidden >= 1, "hidden units", options.model.hidden, "at least 1");
  expect(data.context >= 1, "context", data.context, "at least 1");
  if (data.name == "clicks") check_rows(data.rows);
  expect_one_of("optimizer", options.optimizer, optimizer_names());
  expect(data.train_examples >= 0, "training examples", data.train_examples, "at least 1, or 0 for all");
  expect(data.test_examples >= 0, "test examples", data.test_examples, "at least 1, or 0 for all");
  expect(options.seed <= std::numeric_limits<std::int64_t>::max(), "seed", options.seed, "at most 2^63 - 1");
  expect(options.batch_size >= 1, "batch size", options.batch_size, "at least 1");
  expect(options.clip_norm >= 0 && std::isfinite(options.clip_norm), "clipping at", options.clip_norm,
         "a norm above 0, or 0 for none");
  expect(options.final_rate >= 0 && std::isfinite(options.final_rate), "final learning rate", options.final_rate,
         "a number of at least 0");
  expect(options.swa_start >= 0, "mean from iteration", options.swa_start, "at least 1, or 0 for no mean");
  check_lengths(options);
  expect(options.compute.count() >= 0 && std::isfinite(options.compute.count()), "compute", options.compute.count(),
         "0 or more seconds");
  expect(options.threads >= 1, "threads", options.threads, "at least 1");
  expect(options.checkpoint_every_epochs >= 0 && options.checkpoint_every_iterations >= 0, "checkpoint every",
         std::min<std::int64_t>(options.checkpoint_every_epochs, options.checkpoint_every_iterations), "at least 0");
  if (options.resume && options.checkpoint_folder.empty()) {
    throw InputError("resuming needs the folder of the checkpoints");
  }
}

bool is_counted_in_iterations(const TrainOptions& options) { return !options.epochs && options.max_iterations > 0; }

double peak_learning_rate(const TrainOptions& options) {
  return options.learning_rate.value_or(default_learning_rate(options.optimizer));
}

LearningRate learning_rate_of(const TrainOptions& options, std::int64_t iterations_per_epoch) {
  const bool in_iterations = is_counted_in_iterations(options);
  const std::int64_t total =
      in_iterations ? options.max_iterations : iterations_per_epoch * options.epochs.value_or(kEpochs);
  const double epoch = static_cast<double>(iterations_per_epoch);
  double warmup = in_iterations ? kWarmupPart * static_cast<double>(total) : kWarmupEpochs * epoch;
  if (options.warmup_epochs) warmup = *options.warmup_epochs * epoch;
  if (options.warmup_iterations) warmup = static_cast<double>(*options.warmup_iterations);
  const auto most = static_cast<double>(total);
  LearningRate rate{peak_learning_rate(options), static_cast<std::int64_t>(std::round(std::min(warmup, most))), total};
  rate.final = options.final_rate;
  if (options.swa_start > 0 && options.final_rate > 0) rate.fallen_at = options.swa_start;
  return rate;
}

}  // namespace dssync
