// One worker: joins the others, does its job, and ends in an orderly way when it is told to stop.
#pragma once

#include <functional>
#include <string>

#include "dssync/base/units.h"
#include "dssync/comm/world.h"
#include "dssync/launch/assignment.h"
#include "dssync/launch/local_workers.h"
#include "worker_ending.h"

namespace dssync::cli {

// Returns the exit status.
using Job = std::function<int(World& world, WorkerEnding& ending)>;

// Returns the exit status; tells what went wrong as "SPEAKER: rank 3: ...". `launcher` is null where another program
// started this worker. Call it before this process has threads.
int run_worker(const std::string& speaker, const Assignment& place, LauncherChannel* launcher, Seconds timeout,
               const Job& job);

}  // namespace dssync::cli
