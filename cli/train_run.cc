#include "train_run.h"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/launch/local_workers.h"
#include "dssync/launch/place.h"
#include "dssync/planner/planner.h"
#include "limit.h"
#include "live_line.h"
#include "text/style.h"
#include "tool.h"
#include "train_network.h"
#include "train_store.h"
#include "train_worker.h"

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
  const SyncOptions& sync = command.sync;
  if (sync.method != Method::kDsSync || sync.published || sync.group_limit == 0) return;
  Planner planner(topology, 8e6, sync.group_limit);
  best_or_explain(planner, sync.disagreement, sync.group_limit);
}

Place local_place(int rank, int size, std::uint16_t port) {
  Place place;
  place.rank = rank;
  place.size = size;
  place.local_rank = rank;
  place.store_port = port;
  place.store_is_hosted = true;
  place.launcher = "dssync";
  return place;
}

std::string loss_text(const LostWorker& lost) { return fmt::format("rank {} {}", lost.rank, lost.description); }

int tell_outcome(const Supervision& report) {
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
  return complain(kSpeaker, text, is_bad_input ? kBadInput : kFailed);
}

int launch(const TrainCommand& command, const Topology& topology) {
  const int size = topology.workers();
  LocalWorkers workers(size, [&](int rank, LauncherChannel& launcher) {
    const auto port = static_cast<std::uint16_t>(std::stoi(launcher.receive()));
    return run_worker(command, topology, local_place(rank, size, port), &launcher);
  });
  StoreServer store(command.port);
  workers.broadcast(std::to_string(store.port()));
  bool is_first = true;
  return tell_outcome(workers.supervise([&](const LostWorker& lost) {
    // A worker that gives up because of another one has told the others itself.
    if (is_first || lost.status < 0) store.publish_loss(lost.rank, lost.description);
    if (is_first) workers.broadcast(loss_text(lost));
    is_first = false;
  }));
}

}  // namespace

int run_train(const TrainCommand& command) {
  const std::optional<Place> place = place_from(process_environment());
  if (place && command.port != 0) {
    throw InputError(
        fmt::format("--port is for workers that dssync starts itself, but {} started this one; expected "
                    "the environment variable MASTER_PORT instead",
                    place->launcher));
  }
  const ReadResult network = network_of(command.topology, command.workers, command.assumptions, place);
  if (!place || place->rank == 0) {
    for (const std::string& note : network.notes) fmt::print(stderr, "{}: note: {}\n", kSpeaker, printable(note));
  }
  check_early(command, network.topology);
  return place ? run_worker(command, network.topology, *place, nullptr) : launch(command, network.topology);
}

}  // namespace dssync::cli
