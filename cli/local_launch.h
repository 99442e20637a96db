// Starts all workers of a network on this machine: on loopback, or each in its host of a testbed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dssync/launch/local_workers.h"
#include "dssync/launch/place.h"
#include "dssync/testbed/testbed.h"
#include "dssync/topology/topology.h"

namespace dssync::cli {

struct LocalLaunch {
  std::string speaker;  // "dssync train"
  std::string source;   // of the topology, for those who look at the testbed
  bool emulate = false;
  std::uint16_t port = 0;  // of the store; 0: any free one
};

// What a worker does, in its own process; returns its exit status. `testbed` is null where there is none.
using LocalWorker = std::function<int(const Place& place, LauncherChannel* launcher, const Testbed* testbed)>;

// Returns the exit status when all have ended; what went wrong has been told. Call it before this process has threads.
// Throws where nothing could be started.
int launch_locally(const LocalLaunch& launch, const Topology& topology, const LocalWorker& worker);

}  // namespace dssync::cli
