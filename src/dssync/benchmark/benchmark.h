// Measures how long an iteration of each method takes on the network at hand: communication alone, or around a time of
// computing in which a worker is asleep. Start here: run_benchmark().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/comm/world.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/topology.h"

namespace dssync {

// A method, and how its values travel where that is not what the options of all methods say.
struct BenchmarkedMethod {
  Method method = Method::kDsSync;
  std::optional<CodecChoice> codec{};

  bool operator==(const BenchmarkedMethod&) const = default;
};

// "bsp-ring", "ds-sync:int4"; the other way, throws InputError with the names that are known.
std::string name_of(const BenchmarkedMethod& method);
BenchmarkedMethod benchmarked_method_from_name(const std::string& name);

// All options as this method has them.
SyncOptions options_of(const BenchmarkedMethod& method, SyncOptions options);

struct BenchmarkOptions {
  std::vector<BenchmarkedMethod> methods;
  SyncOptions sync;                // method, and codecs that methods carry, aside
  std::int64_t bytes = 8'000'000;  // that are averaged: float32 values
  int iterations = 10;             // in a block; a method with a cycle does whole cycles, at least as many
  int repeats = 5;                 // blocks of each method; methods take turns
  Seconds compute{0};
  std::filesystem::path trace{};  // of rank 0, one Chrome trace of all workers; empty: none
};

// One method, as rank 0 sees it.
struct MethodFigures {
  BenchmarkedMethod method{};
  int iterations = 0;           // in each block
  std::vector<double> seconds;  // per iteration of the slowest worker, by block
  std::vector<double> bytes;    // per iteration that every link carried, by LinkId; none where nobody counts
  std::optional<Plan> plan;
  Cost predicted;  // of communication
  double predicted_seconds = 0;
  double cpu_share = 0;  // of this machine's CPUs that was busy, with whatever, throughout the blocks: 0 to 1
};

// The bytes that every link has carried so far, by LinkId.
using LinkCounter = std::function<std::vector<std::uint64_t>()>;
// Both are called by all workers, and may be null.
struct BenchmarkWatcher {
  // Before the first iteration; what is predicted is known.
  std::function<void(const std::vector<MethodFigures>& methods)> begins;
  // After every iteration of a block, counted from 1. `method` has the blocks before this one.
  std::function<void(const MethodFigures& method, int iteration)> iterated;
};

// How long all blocks should take, with what goes before the first.
double predicted_total(const std::vector<MethodFigures>& methods, int repeats);

// Collective. `count` may be null.
std::vector<MethodFigures> run_benchmark(World& world, const Topology& topology, const BenchmarkOptions& options,
                                         const LinkCounter& count, const BenchmarkWatcher& watcher);

}  // namespace dssync
