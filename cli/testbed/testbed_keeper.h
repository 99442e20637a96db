// The process in the background that holds a testbed of `dssync testbed up`.
#pragma once

#include <string>

#include "dssync/topology/topology.h"

namespace dssync::cli {

// Starts it and returns the name of the testbed once that is built. What fails on the way is thrown here, as the same
// kind of exception, and no process is left. The keeper ends with SIGTERM, SIGINT or SIGHUP.
std::string start_keeper(const Topology& topology, const std::string& name, const std::string& source);

}  // namespace dssync::cli
