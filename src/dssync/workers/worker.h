// One worker: joins the others, does its job, and ends in an orderly way when it is told to stop.
#pragma once

#include <chrono>
#include <functional>

#include "dssync/comm/world.h"
#include "dssync/launch/assignment.h"
#include "dssync/launch/exit_status.h"
#include "dssync/launch/local_workers.h"
#include "dssync/workers/worker_ending.h"

namespace dssync {

struct WorkerOptions {
  Assignment assignment;
  std::chrono::milliseconds timeout{60'000};  // how long workers wait for each other
  LauncherChannel* launcher = nullptr;        // null where another program started this worker
  Complain complain;                          // tells people what went wrong here; called by any thread
};

// Returns the exit status. What it throws becomes one, as exit_status_of() says.
using Job = std::function<int(World& world, WorkerEnding& ending)>;

// Returns the exit status; `complain` has been told what went wrong. Where nobody else serves the store, rank 0 does,
// until the others have left. Call it before this process has threads.
int run_worker(const WorkerOptions& options, const Job& job);

}  // namespace dssync
