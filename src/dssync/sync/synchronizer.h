// Keeps the replicas of all workers together while they train. Start here: make_synchronizer, then its four moments
// around an existing training loop. docs/runtime.md explains what each method does at which moment.
//
//   auto sync = make_synchronizer(world, replica_of(*model, optimizer), topology, options);
//   for (...) {
//     sync->before_forward();
//     loss(...).backward();
//     sync->after_backward();
//     optimizer.step();
//     sync->after_step();
//   }
//   sync->consolidate();
//
// Not thread-safe: one thread calls it. Every worker makes the same calls in the same order. After an exception the
// synchronizer can only be destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dssync/collective/timeline.h"
#include "dssync/comm/world.h"
#include "dssync/method/options.h"
#include "dssync/monitor/plan_change.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/replica.h"
#include "dssync/topology/topology.h"

namespace dssync {

// Figures of the last iteration on this worker.
struct SyncMetrics {
  double sync_seconds = 0;      // that the calls of this object kept the training thread from going on
  double wait_seconds = 0;      // of these, spent waiting for other workers and the network
  std::int64_t bytes_sent = 0;  // by this worker
  // Estimate of (1/N) sum |x_i - mean|^2 from how far this worker's averages moved it; 0 for methods that keep replicas
  // equal. docs/mixing.md says what it rests on.
  double disagreement = 0;
  double parameter_norm = 0;  // |x_i|, of the same elements
};

// What a synchronizer remembers from one iteration to the next. For checkpoints.
struct SyncState {
  std::int64_t iteration = 0;          // that were done
  std::vector<NamedTensor> tensors{};  // what else the method needs, by name
};

// A plan that took another's place.
struct PlanEvent {
  std::int64_t iteration = 0;  // the first that follows it, counted from 0
  PlanChange change;
};

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  virtual void before_forward() = 0;
  virtual void after_backward() = 0;
  virtual void after_step() = 0;

  // The tensors were given other values, such as a checkpoint's: what an average that is under way finds does not
  // concern them any more, and is not added. For this worker alone; the others need not do the same.
  virtual void drop_average() {}

  // One exact average of everyone: afterwards all replicas have the same parameters and buffers. Before evaluating,
  // saving, and at the end. Returns the disagreement that it found: this worker's |x_i - mean|^2.
  virtual double consolidate() = 0;

  virtual const SyncMetrics& metrics() const = 0;

  // ds-sync: what it follows; where it adapts, until the next iteration. Others: nothing.
  virtual const Plan* plan() const = 0;

  // Changes of the plan since the last call; the same on all workers.
  virtual std::vector<PlanEvent> take_plan_events() = 0;

  // How many iterations were done.
  virtual std::int64_t iteration() const = 0;

  // What it has to remember beside the replica's own tensors, to go on later as if it had not been interrupted.
  // Between two iterations. Tensors are copies.
  virtual SyncState state() const = 0;
  // Of this worker, before the first iteration. What a plan of another form cannot use is left out.
  virtual void load_state(const SyncState& state) = 0;
};

// Lays the parameters out in flat tensors (they stay the same tensors to their owner), makes sure that all workers have
// the same model, network and options, gives all workers rank 0's values, makes and connects the process groups.
// Collective. `topology` has one worker per rank; `world` and `timeline` (which may be null) must outlive the
// synchronizer. Throws InputError where topology and world differ in size, AgreementError where the workers differ.
std::unique_ptr<Synchronizer> make_synchronizer(World& world, const Replica& replica, const Topology& topology,
                                                const SyncOptions& options = {}, Timeline* timeline = nullptr);

}  // namespace dssync
