#include "bench_run.h"

#include <optional>

#include <fmt/format.h>

#include "bench_report.h"
#include "live_line.h"
#include "output.h"
#include "run_workers.h"
#include "tool.h"

namespace dssync::cli {
namespace {

constexpr const char* kSpeaker = "dssync bench";

int measure_and_tell(const BenchCommand& command, const RunNetwork& network, World& world) {
  const bool is_shown = world.rank() == 0;
  LiveLine line(standard_error_screen(), LiveLine::Clock::now());
  const BlockWatcher watcher = [&](const MethodFigures& method) {
    if (!is_shown) return;
    line.show(fmt::format("{}: {:.1f} ms per iteration, block {} of {}", name_of(method.method),
                          1e3 * method.seconds.back(), method.seconds.size(), command.benchmark.repeats),
              LiveLine::Clock::now());
  };
  BenchReport report{command.network.source(), network.is_emulated, command.benchmark, {}};
  report.methods = run_benchmark(world, network.topology, command.benchmark, network.count, watcher);
  if (!is_shown) return kDone;
  line.clear();
  write_result(command.format == "json" ? bench_as_json(report, network.topology)
                                        : bench_as_text(report, network.topology, style_of_output(command.color)));
  return kDone;
}

}  // namespace

int run_bench(const BenchCommand& command) {
  const std::optional<Place> own = place_from(process_environment());
  const KnownNetwork network = read_network(command.network, own, kSpeaker);
  const BenchmarkOptions& options = command.benchmark;
  if (network.topology) {
    check_limit(command.sync, options.methods, *network.topology, static_cast<double>(options.bytes));
  }
  return run_workers(
      kSpeaker, command.network, network, own,
      [&](World& world, WorkerEnding&, const RunNetwork& found) { return measure_and_tell(command, found, world); });
}

}  // namespace dssync::cli
