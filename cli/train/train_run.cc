#include "train/train_run.h"

#include <optional>

#include "dssync/launch/exit_status.h"
#include "dssync/training/models/models.h"
#include "network/run_workers.h"
#include "terminal/output.h"
#include "train/train_summary.h"
#include "train/train_watcher.h"

namespace dssync::cli {
namespace {

constexpr const char* kTrain = "dssync train";

double model_bytes(const TrainOptions& training) {
  const auto model = make_model(training.model, training.seed, shape_of(training.data));
  return static_cast<double>(parameter_count(*model) * static_cast<std::int64_t>(sizeof(float)));
}

// What can be known to be wrong before any worker starts.
void check_early(const TrainCommand& command, const KnownNetwork& network) {
  check_writable("--log", command.training.log);
  check_writable("--trace", command.training.trace);
  constexpr double kAnyBytes = 8e6;  // whether a limit can be met does not depend on the model
  if (network.topology) check_limit(command.sync, {command.sync.method}, *network.topology, kAnyBytes);
}

int train_and_tell(const TrainCommand& command, const RunNetwork& network, World& world, WorkerEnding& ending) {
  TrainOptions options = command.training;
  options.surroundings = {command.words, command.network.source(), network.is_emulated, network.count};
  TrainWatcher watcher(command, world.rank() == 0, ending);
  const TrainResult result = train(world, network.topology, options, command.sync, &watcher);
  if (world.rank() != 0) return ExitStatus::kDone;
  const TrainSummary& summary = watcher.finish(result);
  write_result(command.format == "json" ? summary_as_json(summary)
                                        : summary_as_text(summary, style_of_output(command.color)));
  return ExitStatus::kDone;
}

}  // namespace

int run_train(const TrainCommand& command) {
  const std::optional<Assignment> own = assignment_from(process_environment());
  const KnownNetwork network = read_network(command.network, own, kTrain);
  check_early(command, network);
  const Prediction prediction = [&](const Topology& topology) {
    const TrainOptions& training = command.training;
    return predicted_iteration(command.sync, {command.sync.method}, topology, model_bytes(training), training.compute);
  };
  return run_workers(kTrain, command.network, network, own, prediction,
                     [&](World& world, WorkerEnding& ending, const RunNetwork& found) {
                       return train_and_tell(command, found, world, ending);
                     });
}

}  // namespace dssync::cli
