#include "network/run_workers.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/launch/exit_status.h"
#include "dssync/testbed/testbed.h"
#include "dssync/workers/launcher.h"
#include "network/find_network.h"
#include "terminal/live_line.h"
#include "terminal/output.h"

namespace dssync::cli {
namespace {

// "dssync train: rank 3: MESSAGE" on standard error, below a live line that any process left there.
Complain complain_as(const std::string& speaker, int rank) {
  return [speaker, start = fmt::format("rank {}: ", rank), rank](const std::string& message, int status) {
    clear_standard_error_line();
    const bool has_start = message.starts_with(start);
    return complain(fmt::format("{}: rank {}", speaker, rank), has_start ? message.substr(start.size()) : message,
                    status);
  };
}

int tell_outcome(const std::string& speaker, const Supervision& outcome) {
  if (outcome.went_well()) return ExitStatus::kDone;
  clear_standard_error_line();
  std::string text;
  if (outcome.interrupted_by != 0) {
    text = fmt::format("interrupted by signal {} ({})", outcome.interrupted_by, sigdescr_np(outcome.interrupted_by));
  } else {
    text = loss_text(outcome.lost.front());
  }
  if (!outcome.unresponsive.empty()) {
    text += fmt::format("; did not end and had to be killed: rank {}", fmt::join(outcome.unresponsive, ", "));
  }
  const bool is_bad_input = outcome.interrupted_by == 0 && outcome.lost.front().status == ExitStatus::kBadInput;
  return complain(speaker, text, is_bad_input ? ExitStatus::kBadInput : ExitStatus::kFailed);
}

// A verb's workers: what they are told, and what they do.
class Workers {
 public:
  Workers(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network,
          const Prediction& prediction, const WorkersJob& job)
      : speaker_(speaker), flags_(flags), network_(network), prediction_(prediction), job_(job) {}

  // This process is one of them. `launcher` and `testbed` are null where there is none.
  int run_one(const Assignment& assignment, LauncherChannel* launcher, const Testbed* testbed) const {
    const WorkerOptions options{
        .assignment = assignment,
        .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout_of(flags_, network_, prediction_)),
        .launcher = launcher,
        .complain = complain_as(speaker_, assignment.rank)};
    return run_worker(options, [&](World& world, WorkerEnding& ending) { return do_job(world, ending, testbed); });
  }

  // This process starts them all.
  int launch() const {
    std::optional<Testbed> testbed;
    LaunchOptions options{.workers = network_.workers, .port = flags_.port};
    if (network_.emulated) {
      testbed.emplace(*network_.emulated, "", flags_.is_discovered() ? flags_.emulated : flags_.source());
      fmt::print(stderr, "{}: emulating the network as testbed {}\n", speaker_, testbed->name());
      options.enter_host = [&](int rank) { return enter(*testbed, rank); };
    }
    const Testbed* const known = testbed ? &*testbed : nullptr;
    const Supervision outcome = launch_workers(options, [&](const Assignment& assignment, LauncherChannel& launcher) {
      return run_one(assignment, &launcher, known);
    });
    return tell_outcome(speaker_, outcome);
  }

 private:
  std::string enter(const Testbed& testbed, int rank) const {
    unsetenv("GLOO_SOCKET_IFNAME");  // which names an interface of the machine, not of the testbed
    testbed.enter(network_.emulated->host_at(network_.emulated->position_of(rank)));
    return testbed.fabric_address();
  }

  // The job of a worker, once it knows its network.
  int do_job(World& world, WorkerEnding& ending, const Testbed* testbed) const {
    // Only links that the workers know by the same numbers can be counted.
    const bool is_counted = testbed != nullptr && network_.topology;
    const LinkCounter count = is_counted ? LinkCounter([testbed] { return testbed->bytes(); }) : nullptr;
    const Topology topology = network_.topology ? *network_.topology : find_network(speaker_, flags_, world);
    return job_(world, ending, {topology, testbed != nullptr, count});
  }

  const std::string& speaker_;
  const NetworkFlags& flags_;
  const KnownNetwork& network_;
  const Prediction& prediction_;
  const WorkersJob& job_;
};

}  // namespace

Seconds timeout_of(const NetworkFlags& flags, const KnownNetwork& network, const Prediction& prediction) {
  constexpr Seconds kUsual{60};
  constexpr Seconds kMost{86'400};
  if (flags.timeout) return *flags.timeout;
  return network.topology ? std::clamp(10 * prediction(*network.topology), kUsual, kMost) : kUsual;
}

int run_workers(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network,
                const std::optional<Assignment>& own, const Prediction& prediction, const WorkersJob& job) {
  const Workers workers(speaker, flags, network, prediction, job);
  return own ? workers.run_one(*own, nullptr, nullptr) : workers.launch();
}

}  // namespace dssync::cli
