#include "train_run.h"

#include <optional>

#include "output.h"
#include "run_workers.h"
#include "tool.h"
#include "train_summary.h"
#include "train_watcher.h"

namespace dssync::cli {
namespace {

constexpr const char* kSpeaker = "dssync train";

// What can be known to be wrong before any worker starts.
void check_early(const TrainCommand& command, const KnownNetwork& network) {
  check_writable("--log", command.training.log);
  check_writable("--trace", command.training.trace);
  constexpr double kAnyBytes = 8e6;  // whether a limit can be met does not depend on the model
  if (network.topology) check_limit(command.sync, {command.sync.options.method}, *network.topology, kAnyBytes);
}

int train_and_tell(const TrainCommand& command, const RunNetwork& network, World& world, WorkerEnding& ending) {
  TrainOptions options = command.training;
  options.surroundings = {command.words, command.network.source(), network.is_emulated, network.count};
  TrainWatcher watcher(command, world.rank() == 0, ending);
  const TrainResult result = train(world, network.topology, options, command.sync.options, &watcher);
  if (world.rank() != 0) return kDone;
  const TrainSummary& summary = watcher.finish(result);
  write_result(command.format == "json" ? summary_as_json(summary)
                                        : summary_as_text(summary, style_of_output(command.color)));
  return kDone;
}

}  // namespace

int run_train(const TrainCommand& command) {
  const std::optional<Place> own = place_from(process_environment());
  const KnownNetwork network = read_network(command.network, own, kSpeaker);
  check_early(command, network);
  return run_workers(kSpeaker, command.network, network, own,
                     [&](World& world, WorkerEnding& ending, const RunNetwork& found) {
                       return train_and_tell(command, found, world, ending);
                     });
}

}  // namespace dssync::cli
