// ds-sync and local-sgd: parameters are averaged in the groups of a schedule, in line after the optimizer's step or
// overlapped with the next gradient.
#pragma once

#include <memory>

#include "dssync/sync/synchronizer.h"

namespace dssync {

std::unique_ptr<Synchronizer> make_ds_sync(World& world, const Replica& replica, const Topology& topology,
                                           const SyncOptions& options, Timeline* timeline);

}  // namespace dssync
