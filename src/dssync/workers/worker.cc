#include "dssync/workers/worker.h"

#include <csignal>
#include <memory>
#include <vector>

#include "dssync/launch/stop_signal.h"
#include "dssync/workers/store_server.h"

namespace dssync {
namespace {

using std::chrono::seconds;

// While this worker is part of a world.
class Participation {
 public:
  Participation(WorkerEnding& ending, World& world) : ending_(ending), world_(world) { ending_.set_world(&world); }
  ~Participation() {
    ending_.set_world(nullptr);
    depart(world_);
  }
  Participation(const Participation&) = delete;
  Participation& operator=(const Participation&) = delete;

 private:
  WorkerEnding& ending_;
  World& world_;
};

// Rank 0 serves the store where nobody else does, until the others have left.
int serve_and_work(Assignment assignment, const std::function<int(const Assignment&)>& work) {
  if (assignment.run.name.empty()) assignment.run.name = make_run_name();
  StoreServer store(assignment.store_port, assignment.run, assignment.size);
  assignment.store_port = store.port();
  assignment.store_is_hosted = true;
  const int status = work(assignment);
  store.await_departures(assignment, status == ExitStatus::kDone ? seconds(10) : seconds(2));
  return status;
}

}  // namespace

int run_worker(const WorkerOptions& options, const Job& job) {
  WorkerEnding ending(options.complain, options.launcher);
  // Workers that our own launcher started hear of a Ctrl-C from it.
  const std::vector<int> signals =
      options.launcher == nullptr ? std::vector<int>{SIGTERM, SIGINT, SIGHUP} : std::vector<int>{SIGTERM};
  const StopSignal stop(signals, [&](int signal) { ending.stop(signal); });
  const auto work = [&](const Assignment& at) {
    const auto join_and_work = [&] {
      const std::unique_ptr<World> world = World::at(at, options.timeout);
      const Participation participation(ending, *world);
      return job(*world, ending);
    };
    return exit_status_of(join_and_work, options.complain);
  };
  const Assignment& own = options.assignment;
  const bool is_serving = own.rank == 0 && !own.store_is_hosted;
  return exit_status_of([&] { return is_serving ? serve_and_work(own, work) : work(own); }, options.complain);
}

}  // namespace dssync
