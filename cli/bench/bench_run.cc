#include "bench/bench_run.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "bench/bench_report.h"
#include "dssync/base/units.h"
#include "dssync/launch/exit_status.h"
#include "network/run_workers.h"
#include "terminal/live_line.h"
#include "terminal/output.h"

namespace dssync::cli {
namespace {

constexpr const char* kBench = "dssync bench";
constexpr double kWorthTelling = 5;  // seconds

int measure_and_tell(const BenchCommand& command, const RunNetwork& network, World& world) {
  const bool is_shown = world.rank() == 0;
  LiveLine line(standard_error_screen(), LiveLine::Clock::now());
  BenchmarkWatcher watcher;
  if (is_shown) {
    watcher.begins = [&](const std::vector<MethodFigures>& methods) {
      const double seconds = predicted_total(methods, command.benchmark.repeats);
      if (seconds < kWorthTelling) return;
      fmt::print(stderr, "{}: this takes about {}, if the network is as fast as described\n", kBench,
                 format_duration(Seconds(seconds)));
    };
    watcher.iterated = [&](const MethodFigures& method, int iteration) {
      const auto now = LiveLine::Clock::now();
      if (!line.is_due(now)) return;
      line.show(fmt::format("{}: block {} of {}, iteration {} of {}", name_of(method.method), method.seconds.size() + 1,
                            command.benchmark.repeats, iteration, method.iterations),
                now);
    };
  }
  BenchReport report{command.network.source(), network.is_emulated, command.benchmark, {}};
  report.methods = run_benchmark(world, network.topology, command.benchmark, network.count, watcher);
  if (!is_shown) return ExitStatus::kDone;
  line.clear();
  write_result(command.format == "json" ? bench_as_json(report, network.topology)
                                        : bench_as_text(report, network.topology, style_of_output(command.color)));
  return ExitStatus::kDone;
}

}  // namespace

int run_bench(const BenchCommand& command) {
  const std::optional<Assignment> own = assignment_from(process_environment());
  const KnownNetwork network = read_network(command.network, own, kBench);
  const BenchmarkOptions& options = command.benchmark;
  if (network.topology) {
    for (const BenchmarkedMethod& method : options.methods) {
      check_limit(options_of(method, command.sync), {method.method}, *network.topology,
                  static_cast<double>(options.bytes));
    }
  }
  const Prediction prediction = [&](const Topology& topology) {
    Seconds slowest{0};
    for (const BenchmarkedMethod& method : options.methods) {
      slowest = std::max(slowest, predicted_iteration(options_of(method, command.sync), {method.method}, topology,
                                                      static_cast<double>(options.bytes), options.compute));
    }
    return slowest;
  };
  return run_workers(
      kBench, command.network, network, own, prediction,
      [&](World& world, WorkerEnding&, const RunNetwork& found) { return measure_and_tell(command, found, world); });
}

}  // namespace dssync::cli
