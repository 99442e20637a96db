// Runs as tests need them.
#pragma once

#include <string>
#include <vector>

#include "dssync/report/run.h"

namespace dssync {

// A finished run with four iterations of 100 ms and an evaluation with each of these accuracies, ten seconds apart.
inline TrainingRun run_of(const std::string& method, std::uint64_t seed, const std::vector<double>& accuracies) {
  TrainingRun run;
  run.file = method + std::to_string(seed) + ".jsonl";
  run.method = method;
  run.seed = seed;
  run.workers = 4;
  run.total_iterations = 4;
  run.options = {{"method", method}, {"seed", std::to_string(seed)}, {"epochs", "2"}};
  for (std::int64_t i = 1; i <= 4; ++i) {
    run.samples.push_back({.iteration = i,
                           .loss = 1,
                           .seconds = 0.1F,
                           .compute_seconds = 0.06F,
                           .sync_seconds = 0.04F,
                           .wait_seconds = 0.03F,
                           .relative_disagreement = 0.01F});
  }
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    run.evaluations.push_back({static_cast<std::int64_t>(i + 1), 10 * static_cast<double>(i + 1), accuracies[i]});
  }
  run.ending = Ending::kFinished;
  return run;
}

// Two racks with two hosts each, uplinks of 1 MB/s and NICs of 10 MB/s, and a plan with two different rounds.
inline Network two_racks() {
  Network network;
  network.source = "two-racks.yaml";
  network.nodes = {{"core", false, -1, 0, {}}, {"rack-a", false, 0, 1e6, {}}, {"a0", true, 1, 1e7, {0}},
                   {"a1", true, 1, 1e7, {1}},  {"rack-b", false, 0, 1e6, {}}, {"b0", true, 4, 1e7, {2}},
                   {"b1", true, 4, 1e7, {3}}};
  network.shards = 3;
  network.rounds = {{"all", {{0, 1, 2, 3}}}, {"racks", {{0, 1}, {2, 3}}}, {"racks", {{0, 1}, {2, 3}}}};
  network.predicted_seconds = 0.5;
  network.bottleneck = "rack-a up";
  for (const std::string name : {"rack-a", "rack-b"}) {
    for (const std::string way : {" up", " down"}) network.links.emplace_back(name + way, PlannedLink{5e5, 0.5, 1e6});
  }
  for (const std::string name : {"a0", "a1", "b0", "b1"}) {
    for (const std::string way : {" out", " in"}) network.links.emplace_back(name + way, PlannedLink{1e6, 0.1, 1e7});
  }
  return network;
}

}  // namespace dssync
