// One worker of `train`: joins, trains, tells of it, and ends in an orderly way when it is told to stop.
#pragma once

#include "dssync/launch/local_workers.h"
#include "dssync/launch/place.h"
#include "train.h"

namespace dssync::cli {

// Returns the exit status; tells what went wrong as "dssync train: rank 3: ...". `launcher` is null where another
// program started this worker. Call it before this process has threads.
int run_worker(const TrainCommand& command, const Topology& topology, const Place& place, LauncherChannel* launcher);

}  // namespace dssync::cli
