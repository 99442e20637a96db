// Measures how long an iteration of each method takes on the network at hand: communication alone, or around a time of
// computing in which a worker is asleep. Start here: run_benchmark().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/runtime/synchronizer.h"
#include "dssync/runtime/world.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct BenchmarkOptions {
  std::vector<Method> methods;
  SyncOptions sync;                // `method` aside
  std::int64_t bytes = 8'000'000;  // that are averaged: float32 values
  int iterations = 10;             // in a block; a method with a cycle does whole cycles, at least as many
  int repeats = 5;                 // blocks of each method; methods take turns
  Seconds compute{0};
  std::filesystem::path trace{};  // of rank 0, one Chrome trace of all workers; empty: none
};

// One method, as rank 0 sees it.
struct MethodFigures {
  Method method = Method::kDsSync;
  int iterations = 0;           // in each block
  std::vector<double> seconds;  // per iteration of the slowest worker, by block
  std::vector<double> bytes;    // per iteration that every link carried, by LinkId; none where nobody counts
  std::optional<Plan> plan;
  Cost predicted;  // of communication
  double predicted_seconds = 0;
};

// The bytes that every link has carried so far, by LinkId.
using LinkCounter = std::function<std::vector<std::uint64_t>()>;
// Called by all workers after every block.
using BlockWatcher = std::function<void(const MethodFigures& method)>;

// Collective. Both functions may be null.
std::vector<MethodFigures> run_benchmark(World& world, const Topology& topology, const BenchmarkOptions& options,
                                         const LinkCounter& count, const BlockWatcher& watcher);

}  // namespace dssync
