// The options of a run, put into words: for the log, and to compare with a checkpoint and with other workers. Pure.
#pragma once

#include <string>
#include <vector>

#include "dssync/method/options.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"
#include "dssync/training/checkpoints/checkpoint.h"
#include "dssync/training/log/reports.h"
#include "dssync/training/train_options.h"

namespace dssync {

// All that were given, in the order of the structs; of SyncOptions only what the method looks at.
Fields fields_of(const TrainOptions& options, const SyncOptions& sync);

// What decides which numbers a run computes.
RunIdentity identity_of(const TrainOptions& options, const SyncOptions& sync, int workers);

// What all workers of a run must have in common: its identity, and what they do together.
std::vector<std::string> promises_of(const TrainOptions& options, const RunIdentity& identity);

// A plan in a few values.
Fields fields_of(const Plan& plan, const Topology& topology);

}  // namespace dssync
