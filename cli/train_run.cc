#include "train_run.h"

#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "output.h"
#include "run_workers.h"
#include "tool.h"
#include "train_summary.h"
#include "train_watcher.h"

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

// What can be known to be wrong before any worker starts.
void check_early(const TrainCommand& command, const Topology& topology) {
  check_folder_of("--log", command.training.log);
  check_folder_of("--trace", command.training.trace);
  constexpr double kAnyBytes = 8e6;  // whether a limit can be met does not depend on the model
  check_limit(command.sync, {command.sync.options.method}, topology, kAnyBytes);
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
  return run_workers(kSpeaker, command.network, topology, own,
                     [&](World& world, WorkerEnding& ending, const Testbed* testbed) {
                       return train_and_tell(command, topology, testbed, world, ending);
                     });
}

}  // namespace dssync::cli
