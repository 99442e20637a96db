// Runs the workers of a verb: this process as one of them, where a launcher's variables say which, or all of them on
// this machine, on loopback or each in its host of a testbed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "dssync/benchmark/benchmark.h"
#include "dssync/launch/assignment.h"
#include "dssync/topology/topology.h"
#include "dssync/workers/worker.h"
#include "flags/network_flags.h"
#include "network/known_network.h"

namespace dssync::cli {

// What the workers run on.
struct RunNetwork {
  Topology topology;  // as they were told, or as they found out
  bool is_emulated = false;
  LinkCounter count;  // null where nobody counts
};

// How long an iteration should take at most. Called in the worker, before it meets the others.
using Prediction = std::function<Seconds(const Topology& topology)>;
// What a worker does; returns its exit status.
using WorkersJob = std::function<int(World& world, WorkerEnding& ending, const RunNetwork& network)>;

// How long workers wait for each other: --timeout, else the larger of 60 s and ten predicted iterations, as far as the
// network is known.
Seconds timeout_of(const NetworkFlags& flags, const KnownNetwork& network, const Prediction& prediction);

// Returns the exit status; what went wrong in a worker has been told as "SPEAKER: rank 3: ...". `own` is empty where
// this process starts the workers. Call it before this process has threads. Throws where nothing could be started.
int run_workers(const std::string& speaker, const NetworkFlags& flags, const KnownNetwork& network,
                const std::optional<Assignment>& own, const Prediction& prediction, const WorkersJob& job);

}  // namespace dssync::cli
