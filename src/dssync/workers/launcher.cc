#include "dssync/workers/launcher.h"

#include <optional>

#include <fmt/format.h>

#include "dssync/workers/store_server.h"

namespace dssync {
namespace {

Assignment local_assignment(const RunId& run, int rank, int size) {
  Assignment assignment;
  assignment.run = run;
  assignment.rank = rank;
  assignment.size = size;
  assignment.local_rank = rank;
  assignment.store_is_hosted = true;
  assignment.launcher = "dssync";
  return assignment;
}

}  // namespace

std::string loss_text(const LostWorker& lost) { return fmt::format("rank {} {}", lost.rank, lost.description); }

Supervision launch_workers(const LaunchOptions& options, const WorkerMain& main) {
  const RunId run{make_run_name()};
  const auto start = [&](int rank, LauncherChannel& launcher) {
    Assignment assignment = local_assignment(run, rank, options.workers);
    if (options.enter_host) assignment.store_host = options.enter_host(rank);
    assignment.store_port = static_cast<std::uint16_t>(std::stoi(launcher.receive()));
    return main(assignment, launcher);
  };
  LocalWorkers workers(options.workers, start, options.ending);
  StoreServer store(options.port, run, options.workers);
  workers.broadcast(std::to_string(store.port()));
  bool is_first = true;
  return workers.supervise([&](const LostWorker& lost) {
    // A worker that gives up because of another one has told so before it ends, and all others know.
    std::optional<Loss> cause;
    for (const Loss& told : store.new_losses()) {
      if (told.told_by == told.rank || told.told_by == Loss::kLauncher) continue;
      workers.give_up(told.rank, told.description);
      cause = told;
    }
    if ((is_first && !cause) || lost.status < 0) store.publish_loss(lost.rank, lost.description);
    if (is_first) workers.broadcast(cause ? cause->text() : loss_text(lost));
    is_first = false;
  });
}

}  // namespace dssync
