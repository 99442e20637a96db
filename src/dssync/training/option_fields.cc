#include "dssync/training/option_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

void append(Fields& fields, const Fields& more) { fields.insert(fields.end(), more.begin(), more.end()); }

Fields model_fields(const TrainOptions& options) {
  Fields fields{{"model", options.model.name}, {"hidden", options.model.hidden}};
  if (options.model.name == "transformer") {
    const TransformerSize& size = options.model.transformer;
    append(fields,
           {{"context", options.data.context}, {"layers", size.layers}, {"width", size.width}, {"heads", size.heads}});
  }
  if (options.model.name == "deepfm") fields.emplace_back("rows", options.data.rows);
  return fields;
}

Fields length_fields(const TrainOptions& options) {
  Fields fields;
  if (is_counted_in_iterations(options)) {
    fields.emplace_back("iterations", options.max_iterations);
  } else {
    fields.emplace_back("epochs", std::int64_t{options.epochs.value_or(kEpochs)});
  }
  if (options.warmup_iterations) {
    fields.emplace_back("warmup_iterations", *options.warmup_iterations);
  } else if (options.warmup_epochs || !is_counted_in_iterations(options)) {
    fields.emplace_back("warmup_epochs", options.warmup_epochs.value_or(kWarmupEpochs));
  }
  return fields;
}

Fields optimizer_fields(const TrainOptions& options) {
  Fields fields{
      {"optimizer", options.optimizer}, {"learning_rate", peak_learning_rate(options)}, {"momentum", options.momentum}};
  if (options.optimizer != "sgd") append(fields, {{"beta1", options.betas.first}, {"beta2", options.betas.second}});
  append(fields, {{"weight_decay", options.weight_decay},
                  {"clip_norm", options.clip_norm},
                  {"final_rate", options.final_rate},
                  {"swa", options.swa_start}});
  return fields;
}

// What decides which numbers are computed on one worker.
Fields core_fields(const TrainOptions& options) {
  Fields fields{{"data", options.data.name},
                {"train_examples", options.data.train_examples},
                {"test_examples", options.data.test_examples}};
  append(fields, model_fields(options));
  append(fields, {{"seed", static_cast<std::int64_t>(options.seed)}, {"batch_size", std::int64_t{options.batch_size}}});
  append(fields, length_fields(options));
  append(fields, optimizer_fields(options));
  append(fields, {{"evaluate_every", std::int64_t{options.evaluate_every}},
                  {"evaluate_every_iterations", options.evaluate_every_iterations}});
  return fields;
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

}  // namespace

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
