// asp and ssp: an asynchronous parameter server, sharded over the workers. Each worker serves one slice of the
// parameters from a thread of its own, and after every step pushes what the step changed and pulls what the others did.
#pragma once

#include <memory>

#include "dssync/sync/synchronizer.h"

namespace dssync {

std::unique_ptr<Synchronizer> make_parameter_server(World& world, const Replica& replica, const Topology& topology,
                                                    const SyncOptions& options, Timeline* timeline);

}  // namespace dssync
