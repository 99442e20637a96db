#include "train_run.h"

#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/planner/planner.h"
#include "limit.h"
#include "local_launch.h"
#include "output.h"
#include "tool.h"
#include "train_summary.h"
#include "train_watcher.h"
#include "worker.h"

namespace dssync::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpeaker = "dssync train";

// A file that cannot be written because of its folder is known before anything starts.
void check_folder_of(const char* flag, const fs::path& file) {
  if (file.empty()) return;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) {
    throw InputError(fmt::format("{}: {} cannot be written: {} is not a folder", flag, file.string(), folder.string()));
  }
  if (fs::is_directory(file, unknown)) throw InputError(fmt::format("{}: {} is a folder", flag, file.string()));
}

// What can be known to be wrong before any worker starts. Whether a limit can be met does not depend on the model.
void check_early(const TrainCommand& command, const Topology& topology) {
  check_folder_of("--log", command.training.log);
  check_folder_of("--trace", command.training.trace);
  const SyncOptions& sync = command.sync.options;
  if (sync.method != Method::kDsSync || sync.published || sync.group_limit == 0) return;
  Planner planner(topology, 8e6, sync.group_limit);
  best_or_explain(planner, sync.disagreement, sync.group_limit);
}

int train_and_tell(const TrainCommand& command, const Topology& topology, const Testbed* testbed, World& world,
                   WorkerEnding& ending) {
  TrainOptions options = command.training;
  options.surroundings = {command.words, command.network.source(), testbed != nullptr, nullptr};
  if (testbed != nullptr) options.surroundings.count = [testbed] { return testbed->bytes(); };
  TrainWatcher watcher(command, world.rank() == 0, ending);
  const TrainResult result = train(world, topology, options, command.sync.options, &watcher);
  if (world.rank() != 0) return kDone;
  const TrainSummary& summary = watcher.finish(result);
  write_result(command.format == "json" ? summary_as_json(summary)
                                        : summary_as_text(summary, style_of_output(command.color)));
  return kDone;
}

}  // namespace

int run_train(const TrainCommand& command) {
  const std::optional<Place> own = place_from(process_environment());
  const Topology topology = read_network(command.network, own, kSpeaker);
  check_early(command, topology);
  const LocalWorker worker = [&](const Place& place, LauncherChannel* launcher, const Testbed* testbed) {
    return run_worker(kSpeaker, place, launcher, command.network.timeout, [&](World& world, WorkerEnding& ending) {
      return train_and_tell(command, topology, testbed, world, ending);
    });
  };
  if (own) return worker(*own, nullptr, nullptr);
  return launch_locally({kSpeaker, command.network.source(), command.network.emulate, command.network.port}, topology,
                        worker);
}

}  // namespace dssync::cli
