#include "dssync/training/train_options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/training/models.h"
#include "dssync/training/optimizers.h"

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

// What decides which numbers are computed on one worker.
Fields core_fields(const TrainOptions& options) {
  return {{"data", options.data},
          {"train_examples", options.train_examples},
          {"test_examples", options.test_examples},
          {"model", options.model},
          {"hidden", options.hidden},
          {"seed", static_cast<std::int64_t>(options.seed)},
          {"epochs", std::int64_t{options.epochs}},
          {"batch_size", std::int64_t{options.batch_size}},
          {"optimizer", options.optimizer},
          {"learning_rate", peak_learning_rate(options)},
          {"momentum", options.momentum},
          {"weight_decay", options.weight_decay},
          {"warmup_epochs", options.warmup_epochs},
          {"evaluate_every", std::int64_t{options.evaluate_every}},
          {"evaluate_every_iterations", options.evaluate_every_iterations}};
}

// What decides how workers influence each other.
Fields sync_fields(const SyncOptions& sync) {
  Fields fields;
  for (const auto& [name, value] : values_of(sync)) {
    std::visit([&fields, &name = name](const auto& held) { fields.emplace_back(name, held); }, value);
  }
  return fields;
}

std::string words_of(const FieldValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value))
    return fmt::format("{}", fmt::join(*list, ", "));
  return std::visit(
      [](const auto& held) -> std::string {
        if constexpr (std::is_constructible_v<OptionValue, decltype(held)>) {
          return text_of(held);
        } else {
          return "";
        }
      },
      value);
}

void append(Fields& fields, const Fields& more) { fields.insert(fields.end(), more.begin(), more.end()); }

}  // namespace

void check(const TrainOptions& options) {
  expect_one_of("data", options.data, {"fashion-mnist", "synthetic"});
  expect_one_of("model", options.model, model_names());
  expect(options.hidden >= 1, "hidden units", options.hidden, "at least 1");
  expect_one_of("optimizer", options.optimizer, optimizer_names());
  expect(options.train_examples >= 0, "training examples", options.train_examples, "at least 1, or 0 for all");
  expect(options.test_examples >= 0, "test examples", options.test_examples, "at least 1, or 0 for all");
  expect(options.seed <= std::numeric_limits<std::int64_t>::max(), "seed", options.seed, "at most 2^63 - 1");
  expect(options.epochs >= 1, "epochs", options.epochs, "at least 1");
  expect(options.max_iterations >= 0, "iterations", options.max_iterations, "at least 1, or 0 for no limit");
  expect(options.batch_size >= 1, "batch size", options.batch_size, "at least 1");
  expect(options.warmup_epochs >= 0 && std::isfinite(options.warmup_epochs), "warm-up epochs", options.warmup_epochs,
         "a number of at least 0");
  expect(options.evaluate_every >= 0, "evaluation every", options.evaluate_every, "at least 1 epoch, or 0 for the end");
  expect(options.evaluate_every_iterations >= 0, "evaluation every", options.evaluate_every_iterations,
         "at least 1 iteration, or 0 for none");
  expect(options.compute.count() >= 0 && std::isfinite(options.compute.count()), "compute", options.compute.count(),
         "0 or more seconds");
  expect(options.threads >= 1, "threads", options.threads, "at least 1");
  expect(options.checkpoint_every_epochs >= 0 && options.checkpoint_every_iterations >= 0, "checkpoint every",
         std::min<std::int64_t>(options.checkpoint_every_epochs, options.checkpoint_every_iterations), "at least 0");
  if (options.resume && options.checkpoint_folder.empty()) {
    throw InputError("resuming needs the folder of the checkpoints");
  }
}

double peak_learning_rate(const TrainOptions& options) {
  return options.learning_rate.value_or(default_learning_rate(options.optimizer));
}

Fields fields_of(const TrainOptions& options, const SyncOptions& sync) {
  Fields fields{{"method", dssync::name_of(sync.method)}};
  append(fields, sync_fields(sync));
  append(fields, core_fields(options));
  append(fields, {{"max_iterations", options.max_iterations},
                  {"compute_seconds", options.compute.count()},
                  {"threads", std::int64_t{options.threads}},
                  {"checkpoint_folder", options.checkpoint_folder.string()},
                  {"checkpoint_every_epochs", std::int64_t{options.checkpoint_every_epochs}},
                  {"checkpoint_every_iterations", options.checkpoint_every_iterations},
                  {"resume", options.resume},
                  {"log", options.log.string()},
                  {"trace", options.trace.string()}});
  return fields;
}

RunIdentity identity_of(const TrainOptions& options, const SyncOptions& sync, int workers) {
  Fields fields{{"workers", std::int64_t{workers}}, {"method", dssync::name_of(sync.method)}};
  append(fields, core_fields(options));
  append(fields, sync_fields(sync));
  RunIdentity identity;
  for (const auto& [name, value] : fields) {
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    identity.emplace_back(words, words_of(value));
  }
  return identity;
}

std::vector<std::string> promises_of(const TrainOptions& options, const RunIdentity& identity) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : identity) lines.push_back(fmt::format("{} {}", name, value));
  lines.push_back(fmt::format("iterations at most {}", options.max_iterations));
  lines.push_back(fmt::format("checkpoints {}, every {} epochs and {} iterations",
                              options.checkpoint_folder.empty() ? "off" : "on", options.checkpoint_every_epochs,
                              options.checkpoint_every_iterations));
  lines.push_back(fmt::format("resume {}", options.resume ? "on" : "off"));
  lines.push_back(fmt::format("trace {}", options.trace.empty() ? "off" : "on"));
  return lines;
}

Fields fields_of(const Plan& plan, const Topology& topology) {
  std::vector<std::string> rounds;
  for (const Round& round : plan.rounds) rounds.push_back(round.label);
  const LinkId bottleneck = plan.cost.bottleneck;
  return {{"rounds", rounds},
          {"shards", std::int64_t{plan.shards}},
          {"seconds_per_iteration", plan.cost.seconds_per_iteration},
          {"steady_disagreement", plan.mixing.steady_disagreement},
          {"cycle_norm", plan.mixing.cycle_norm},
          {"bottleneck", bottleneck == kNone ? std::string() : topology.link(bottleneck).name}};
}

}  // namespace dssync
