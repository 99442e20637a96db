// Small runs for tests of whole trainings, with workers as threads, and what their logs say.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dssync/base/temporary_folder.h"
#include "dssync/comm/testing.h"
#include "dssync/topology/testing.h"
#include "dssync/training/trainer.h"

namespace dssync::testing {

inline constexpr int kWorkers = 4;

// 8 iterations in each of 3 epochs.
inline TrainOptions small_run() {
  TrainOptions options;
  options.data.name = "synthetic";
  options.data.train_examples = 512;
  options.data.test_examples = 203;
  options.model.name = "mlp";
  options.epochs = 3;
  options.batch_size = 16;
  options.learning_rate = 0.05;
  return options;
}

// 8 iterations in each of 3 epochs, as well.
inline TrainOptions small_text_run() {
  TrainOptions options = small_run();
  options.data = {.name = "text", .train_examples = 512, .test_examples = 100, .context = 12};
  options.model = {.name = "transformer", .transformer = {.layers = 1, .width = 16, .heads = 2}};
  options.optimizer = "adamw";
  options.learning_rate = 0.02;
  options.betas = {0.9, 0.95};
  options.clip_norm = 1;
  return options;
}

// 8 iterations in each of 3 epochs, again.
inline TrainOptions small_click_run() {
  TrainOptions options = small_run();
  options.data = {.name = "clicks", .train_examples = 4096, .test_examples = 2000, .rows = 32};
  options.model = {.name = "deepfm"};
  options.batch_size = 128;
  options.optimizer = "adam";
  options.learning_rate = 0.03;
  options.weight_decay = 0;
  return options;
}

inline SyncOptions with(Method method) {
  SyncOptions sync;
  sync.method = method;
  return sync;
}

// Two racks behind slow uplinks, so that ds-sync has something to plan.
inline Topology network(int workers) { return racks(2, workers / 2, 25e6, 6e6); }

inline std::vector<TrainResult> run(const TrainOptions& options, const SyncOptions& sync, int workers = kWorkers,
                                    ProgressSink* progress = nullptr) {
  std::vector<TrainResult> results(static_cast<std::size_t>(workers));
  run_ranks(workers, [&](World& world) {
    results[static_cast<std::size_t>(world.rank())] = train(world, network(workers), options, sync, progress);
  });
  return results;
}

inline std::vector<nlohmann::json> lines_of(const std::filesystem::path& file) {
  std::istringstream text(content_of(file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::vector<nlohmann::json> events_of(const std::filesystem::path& file, const std::string& event) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& line : lines_of(file)) {
    if (line.at("event") == event) found.push_back(line);
  }
  return found;
}

}  // namespace dssync::testing
