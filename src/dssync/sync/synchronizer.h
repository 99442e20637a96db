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
#include "dssync/monitor/policy.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/replica.h"
#include "dssync/topology/topology.h"

namespace dssync {

enum class Method { kBspRing, kBspHierarchical, kPs, kAsp, kSsp, kLocalSgd, kDsSync };

// "bsp-ring", "ds-sync", ...; method_from_name throws InputError with the known names.
std::string name_of(Method method);
Method method_from_name(const std::string& name);
const std::vector<Method>& all_methods();

// What ds-sync does with the optimizer's state (momentum, Adam's moments).
enum class StateTreatment {
  kLocal,     // every worker keeps its own
  kAveraged,  // averaged with the parameters, in the same groups
  kRotating,  // one part of `state_period` in turn, each throughout a cycle of the schedule
};

// "local", "averaged", "rotating"; the other way as for methods.
std::string name_of(StateTreatment treatment);
StateTreatment state_treatment_from_name(const std::string& name);

struct SyncOptions {
  Method method = Method::kDsSync;
  // ds-sync. Without a plan of its own it makes one from the topology, the model's bytes and the three lines below.
  std::optional<Plan> plan{};
  double disagreement = 0.5;
  int group_limit = 0;
  bool published = false;  // the paper's schedule instead of the fastest one
  bool adapt = false;      // watch the links while training, and plan again where that pays (docs/adaptation.md)
  bool steer = false;      // with adapt: `disagreement` is the most, less is allowed while steps are large
  bool overlap = false;    // average while the next gradient is computed (adapt-while-combine)
  StateTreatment state = StateTreatment::kRotating;
  int state_period = 8;  // of kRotating: parts
  int state_parts() const { return state == StateTreatment::kRotating ? state_period : 1; }
  int warmup_iterations = 0;  // global averages before the schedule starts
  // bsp-ring, bsp-hierarchical
  std::int64_t bucket_bytes = 1 << 20;
  // local-sgd: a global average every so many iterations
  int period = 8;
  // ssp: how many iterations the fastest worker may be ahead of the slowest
  int staleness = 3;
};

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

  // How many iterations were done. A resumed run sets where it goes on, before its first iteration.
  virtual std::int64_t iteration() const = 0;
  virtual void resume_at(std::int64_t iteration) = 0;
};

// Lays the parameters out in flat tensors (they stay the same tensors to their owner), makes sure that all workers have
// the same model, network and options, gives all workers rank 0's values, makes and connects the process groups.
// Collective. `topology` has one worker per rank; `world` and `timeline` (which may be null) must outlive the
// synchronizer. Throws InputError where topology and world differ in size, AgreementError where the workers differ.
std::unique_ptr<Synchronizer> make_synchronizer(World& world, const Replica& replica, const Topology& topology,
                                                const SyncOptions& options = {}, Timeline* timeline = nullptr);

}  // namespace dssync
