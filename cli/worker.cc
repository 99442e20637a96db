#include "worker.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <vector>

#include "dssync/launch/stop_signal.h"
#include "store_server.h"
#include "tool.h"

namespace dssync::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// While this worker is part of a world.
class Attendance {
 public:
  Attendance(WorkerEnding& ending, World& world) : ending_(ending), world_(world) { ending_.set_world(&world); }
  ~Attendance() {
    ending_.set_world(nullptr);
    depart(world_);
  }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  WorkerEnding& ending_;
  World& world_;
};

// Rank 0 serves the store where nobody else does, until the others have left.
int serve_and_work(Assignment place, const std::function<int(const Assignment&)>& work) {
  if (place.run.name.empty()) place.run.name = make_run_name();
  StoreServer store(place.store_port, place.run, place.size);
  place.store_is_hosted = true;
  const int status = work(place);
  store.await_departures(place, status == kDone ? seconds(10) : seconds(2));
  return status;
}

}  // namespace

int run_worker(const std::string& speaker, const Assignment& place, LauncherChannel* launcher, Seconds timeout,
               const Job& job) {
  WorkerEnding ending(speaker, place.rank, launcher);
  // Workers that this program launched hear of a Ctrl-C from their launcher.
  const std::vector<int> signals =
      launcher == nullptr ? std::vector<int>{SIGTERM, SIGINT, SIGHUP} : std::vector<int>{SIGTERM};
  const StopSignal stop(signals, [&](int signal) { ending.stop(signal); });
  const auto guarded_here = [&](const std::function<int()>& work) {
    return guarded([&](const std::string& message, int status) { return ending.complain(message, status); }, work);
  };
  const auto work = [&](const Assignment& at) {
    return guarded_here([&] {
      const std::unique_ptr<World> world = World::at(at, std::chrono::duration_cast<milliseconds>(timeout));
      const Attendance attendance(ending, *world);
      return job(*world, ending);
    });
  };
  const bool is_serving = place.rank == 0 && !place.store_is_hosted;
  return guarded_here([&] { return is_serving ? serve_and_work(place, work) : work(place); });
}

}  // namespace dssync::cli
