// bsp-ring, bsp-hierarchical, ps: one exact average of the gradients per iteration, which starts while the backward
// pass still runs. They differ in how the average crosses the network.
#pragma once

#include <memory>

#include "dssync/sync/synchronizer.h"

namespace dssync {

std::unique_ptr<Synchronizer> make_bsp(World& world, const Replica& replica, const Topology& topology,
                                       const SyncOptions& options, Timeline* timeline);

}  // namespace dssync
