#include "bench_run.h"

#include <optional>

#include <fmt/format.h>

#include "bench_report.h"
#include "dssync/planner/planner.h"
#include "limit.h"
#include "live_line.h"
#include "local_launch.h"
#include "output.h"
#include "tool.h"
#include "worker.h"

namespace dssync::cli {
namespace {

constexpr const char* kSpeaker = "dssync bench";

// Whether a limit can be met is known before any worker starts.
void check_early(const BenchmarkOptions& options, const Topology& topology) {
  const bool plans =
      std::find(options.methods.begin(), options.methods.end(), Method::kDsSync) != options.methods.end();
  if (!plans || options.sync.published || options.sync.group_limit == 0) return;
  Planner planner(topology, static_cast<double>(options.bytes), options.sync.group_limit);
  best_or_explain(planner, options.sync.disagreement, options.sync.group_limit);
}

int measure_and_tell(const BenchCommand& command, const Topology& topology, const Testbed* testbed, World& world) {
  const bool is_shown = world.rank() == 0;
  LiveLine line(standard_error_screen(), LiveLine::Clock::now());
  const BlockWatcher watcher = [&](const MethodFigures& method) {
    if (!is_shown) return;
    line.show(fmt::format("{}: {:.1f} ms per iteration, block {} of {}", name_of(method.method),
                          1e3 * method.seconds.back(), method.seconds.size(), command.benchmark.repeats),
              LiveLine::Clock::now());
  };
  const LinkCounter count = testbed == nullptr ? LinkCounter() : [testbed] { return testbed->bytes(); };
  BenchReport report{command.network.source(), testbed != nullptr, command.benchmark, {}};
  report.methods = run_benchmark(world, topology, command.benchmark, count, watcher);
  if (!is_shown) return kDone;
  line.clear();
  write_result(command.format == "json" ? bench_as_json(report, topology)
                                        : bench_as_text(report, topology, style_of_output(command.color)));
  return kDone;
}

}  // namespace

int run_bench(const BenchCommand& command) {
  const std::optional<Place> own = place_from(process_environment());
  const Topology topology = read_network(command.network, own, kSpeaker);
  check_early(command.benchmark, topology);
  const LocalWorker worker = [&](const Place& place, LauncherChannel* launcher, const Testbed* testbed) {
    return run_worker(kSpeaker, place, launcher, command.network.timeout,
                      [&](World& world, WorkerEnding&) { return measure_and_tell(command, topology, testbed, world); });
  };
  if (own) return worker(*own, nullptr, nullptr);
  return launch_locally({kSpeaker, command.network.source(), command.network.emulate, command.network.port}, topology,
                        worker);
}

}  // namespace dssync::cli
