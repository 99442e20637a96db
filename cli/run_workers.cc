#include "run_workers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/launch/local_workers.h"
#include "dssync/testbed/testbed.h"
#include "network/find_network.h"
#include "store_server.h"
#include "terminal/live_line.h"
#include "tool.h"

namespace dssync::cli {
namespace {

std::string loss_text(const LostWorker& lost) { return fmt::format("rank {} {}", lost.rank, lost.description); }

int tell_outcome(const std::string& speaker, const Supervision& report) {
  if (report.went_well()) return kDone;
  clear_standard_error_line();
  std::string text;
  if (report.interrupted_by != 0) {
    text = fmt::format("interrupted by signal {} ({})", report.interrupted_by, sigdescr_np(report.interrupted_by));
  } else {
    text = loss_text(report.lost.front());
  }
  if (!report.unresponsive.empty()) {
    text += fmt::format("; did not end and had to be killed: rank {}", fmt::join(report.unresponsive, ", "));
  }
  const bool is_bad_input = report.interrupted_by == 0 && report.lost.front().status == kBadInput;
  return complain(speaker, text, is_bad_input ? kBadInput : kFailed);
}

Assignment local_place(const RunId& run, int rank, int size) {
  Assignment place;
  place.run = run;
  place.rank = rank;
  place.size = size;
  place.local_rank = rank;
  place.store_is_hosted = true;
  place.launcher = "dssync";
  return place;
}

// The job of a worker in a testbed, or null, once it knows its network.
Job job_on(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network, const Testbed* testbed,
           const WorkersJob& job) {
  return [&, testbed](World& world, WorkerEnding& ending) {
    // Only links that the workers know by the same numbers can be counted.
    const bool is_counted = testbed != nullptr && network.topology;
    const LinkCounter count = is_counted ? LinkCounter([testbed] { return testbed->bytes(); }) : nullptr;
    const Topology topology = network.topology ? *network.topology : find_network(speaker, flags, world);
    return job(world, ending, {topology, testbed != nullptr, count});
  };
}

int launch(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network,
           const Prediction& prediction, const WorkersJob& job) {
  std::optional<Testbed> testbed;
  if (network.emulated) {
    testbed.emplace(*network.emulated, "", flags.is_discovered() ? flags.emulated : flags.source());
    fmt::print(stderr, "{}: emulating the network as testbed {}\n", speaker, testbed->name());
  }
  const RunId run{make_run_name()};
  LocalWorkers workers(network.workers, [&](int rank, LauncherChannel& launcher) {
    Assignment place = local_place(run, rank, network.workers);
    if (testbed) {
      unsetenv("GLOO_SOCKET_IFNAME");  // which names an interface of the machine, not of the testbed
      testbed->enter(network.emulated->host_at(network.emulated->position_of(rank)));
      place.store_host = testbed->fabric_address();
    }
    place.store_port = static_cast<std::uint16_t>(std::stoi(launcher.receive()));
    return run_worker(speaker, place, &launcher, timeout_of(flags, network, prediction),
                      job_on(speaker, flags, network, testbed ? &*testbed : nullptr, job));
  });
  StoreServer store(flags.port, run, network.workers);
  workers.broadcast(std::to_string(store.port()));
  bool is_first = true;
  return tell_outcome(speaker, workers.supervise([&](const LostWorker& lost) {
    // A worker that gives up because of another one has told the others itself.
    if (is_first || lost.status < 0) store.publish_loss(lost.rank, lost.description);
    if (is_first) workers.broadcast(loss_text(lost));
    is_first = false;
  }));
}

}  // namespace

Seconds timeout_of(const NetworkFlags& flags, const KnownNetwork& network, const Prediction& prediction) {
  constexpr Seconds kUsual{60};
  constexpr Seconds kMost{86'400};
  if (flags.timeout) return *flags.timeout;
  return network.topology ? std::clamp(10 * prediction(*network.topology), kUsual, kMost) : kUsual;
}

int run_workers(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network,
                const std::optional<Assignment>& own, const Prediction& prediction, const WorkersJob& job) {
  if (!own) return launch(speaker, flags, network, prediction, job);
  return run_worker(speaker, *own, nullptr, timeout_of(flags, network, prediction),
                    job_on(speaker, flags, network, nullptr, job));
}

}  // namespace dssync::cli
