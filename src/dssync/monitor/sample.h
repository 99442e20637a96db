// What workers measure about the network while they train. Plain values, to be sent to all workers as they are.
//
// Every duration is the difference of two readings of one worker's own clock: clocks of two workers are never compared,
// so it doesn't matter how far they are apart.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// One stage of one iteration, as one of its members saw it.
struct StageSample {
  std::int64_t iteration = 0;
  int stage = 0;  // index in the StageTable of the plan that was in force in this iteration
  Rank rank = 0;
  double bytes = 0;    // that this member sent in it: all pieces, and the optimizer's state that went along
  double seconds = 0;  // in which at least one of its operations was under way at this member

  auto operator<=>(const StageSample&) const = default;
};

// Bytes on an interface for each byte of an average, at most: headers, acknowledgements, some that are sent again.
inline constexpr double kFraming = 1.1;

// One iteration of one worker.
struct WorkerSample {
  std::int64_t iteration = 0;
  Rank rank = 0;
  double compute_seconds = 0;  // of the iteration, without waiting for averages
  double sync_seconds = 0;     // in which at least one operation of any stage was under way
  // What the interface of the worker's host carried from the iteration's begin to its end, whoever sent it, but for
  // this worker's probes and the averages of gradients inside exact regions; and how long that took. 0 seconds: nobody
  // counts.
  double counted_seconds = 0;
  double counted_out = 0;  // bytes
  double counted_in = 0;

  auto operator<=>(const WorkerSample&) const = default;
};

// A transfer that was made to learn about its path. Both ends may report it; the shorter duration counts.
struct ProbeSample {
  std::int64_t iteration = 0;
  Rank from = 0;
  Rank to = 0;
  double bytes = 0;
  double seconds = 0;
  int turn = 0;  // in its iteration: probes of one turn were under way together

  auto operator<=>(const ProbeSample&) const = default;
};

// What is known of some iterations. Order does not matter, samples may be missing, copies do no harm. An iteration
// belongs to one batch: what comes later about it is ignored.
struct SampleBatch {
  std::vector<StageSample> stages;
  std::vector<WorkerSample> workers;
  std::vector<ProbeSample> probes;
};

// Its iterations one by one, ascending, all probes with the last: what a monitor sees does not depend on where batches
// begin and end.
std::vector<SampleBatch> by_iteration(const SampleBatch& batch);

}  // namespace dssync
