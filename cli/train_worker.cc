#include "train_worker.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <vector>

#include "dssync/launch/stop_signal.h"
#include "output.h"
#include "tool.h"
#include "train_ending.h"
#include "train_store.h"
#include "train_summary.h"
#include "train_watcher.h"

namespace dssync::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// While this worker is part of a world.
class Membership {
 public:
  Membership(TrainEnding& ending, World& world) : ending_(ending), world_(world) { ending_.set_world(&world); }
  ~Membership() {
    ending_.set_world(nullptr);
    depart(world_);
  }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

 private:
  TrainEnding& ending_;
  World& world_;
};

int train_and_tell(const TrainCommand& command, const Topology& topology, const Place& place, TrainEnding& ending) {
  const std::unique_ptr<World> world = World::at(place, std::chrono::duration_cast<milliseconds>(command.timeout));
  const Membership membership(ending, *world);
  TrainWatcher watcher(command, place.rank == 0, ending);
  const TrainResult result = train(*world, topology, command.training, command.sync, &watcher);
  if (place.rank != 0) return kDone;
  const TrainSummary& summary = watcher.finish(result);
  write_result(command.format == "json" ? summary_as_json(summary)
                                        : summary_as_text(summary, style_of_output(command.color)));
  return kDone;
}

int guarded_as(int rank, const std::function<int()>& work) {
  return guarded([rank](const std::string& message, int status) { return complain_as(rank, message, status); }, work);
}

// Rank 0 serves the store where nobody else does, until the others have left.
int serve_and_work(Place place, const std::function<int(const Place&)>& work) {
  StoreServer store(place.store_port);
  place.store_is_hosted = true;
  const int status = guarded_as(place.rank, [&] { return work(place); });
  store.await_departures(place, status == kDone ? seconds(10) : seconds(2));
  return status;
}

}  // namespace

int run_worker(const TrainCommand& command, const Topology& topology, const Place& place, LauncherChannel* launcher) {
  TrainEnding ending(place.rank, launcher);
  // Workers that this program launched hear of a Ctrl-C from their launcher.
  const std::vector<int> signals =
      launcher == nullptr ? std::vector<int>{SIGTERM, SIGINT, SIGHUP} : std::vector<int>{SIGTERM};
  const StopSignal stop(signals, [&](int signal) { ending.stop(signal); });
  const auto work = [&](const Place& at) { return train_and_tell(command, topology, at, ending); };
  const bool is_serving = place.rank == 0 && !place.store_is_hosted;
  return guarded_as(place.rank, [&] { return is_serving ? serve_and_work(place, work) : work(place); });
}

}  // namespace dssync::cli
