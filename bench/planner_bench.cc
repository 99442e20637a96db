// How long planning takes and how much memory it needs, for three-level trees of 64 to 16,384 workers (sites of racks
// of hosts with eight workers each).
#include <algorithm>
#include <optional>

#include <benchmark/benchmark.h>

#include "dssync/planner/planner.h"
#include "dssync/topology/testing.h"
#include "memory_meter.h"

namespace dssync {
namespace {

// The number of workers is a power of two; hosts have 8, racks 4 hosts, and the sites share the racks.
Topology network(int workers) {
  const int racks = std::max(1, workers / 32);
  const int sites = racks >= 8 ? 4 : 2;
  const int hosts = workers / (sites * std::max(1, racks / sites) * 8);
  constexpr double kGigabit = 1.25e8;
  return testing::three_levels(sites, std::max(1, racks / sites), hosts, 8, 100 * kGigabit, 100 * kGigabit,
                               200 * kGigabit);
}

void plan(benchmark::State& state, int group_limit, const CodecChoice& codecs = {}) {
  const Topology topology = network(static_cast<int>(state.range(0)));
  if (topology.workers() != state.range(0)) {
    state.SkipWithError("the network has another number of workers");
    return;
  }
  double seconds = 0;
  std::size_t most = 0;
  for (auto _ : state) {
    bench::reset_peak();
    const std::size_t before = bench::allocated_bytes();
    Planner planner(topology, 8e6, group_limit, {}, codecs);
    const std::optional<Plan> found = planner.best(0.5);
    seconds = found ? found->cost.seconds_per_iteration : 0;
    most = bench::peak_bytes() - before;
  }
  state.counters["bytes_per_worker"] = static_cast<double>(most) / static_cast<double>(state.range(0));
  state.counters["speedup"] = ring_seconds(topology, 8e6) / seconds;
}

void plan_without_limit(benchmark::State& state) { plan(state, 0); }
void plan_with_codecs(benchmark::State& state) { plan(state, 0, {std::nullopt, 1e11}); }
void plan_groups_of_8(benchmark::State& state) { plan(state, 8); }

BENCHMARK(plan_without_limit)->Unit(benchmark::kMillisecond)->Arg(64)->Arg(512)->Arg(4096)->Arg(16384);
BENCHMARK(plan_with_codecs)->Unit(benchmark::kMillisecond)->Arg(64)->Arg(512)->Arg(4096)->Arg(16384);
BENCHMARK(plan_groups_of_8)->Unit(benchmark::kMillisecond)->Arg(64)->Arg(512)->Arg(4096);

}  // namespace
}  // namespace dssync

BENCHMARK_MAIN();
