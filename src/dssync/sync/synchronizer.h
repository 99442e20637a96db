// Keeps the replicas of all workers together while they train. Start here: make_synchronizer, then its four moments
// around an existing training loop. docs/runtime.md explains what each method does at which moment.
//
//   auto sync = make_synchronizer(world, replica_of(*model, optimizer), topology, options);
//   for (...) {
//     sync->before_forward();
//     loss(...).backward();
//     sync->after_backward();
//     sync->clip_gradients(1.0);  // where gradients are clipped
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
  // The mean squared norm of this worker's gradients over that of everyone's mean gradient, as far as it can be told
  // from this worker's alone: 1 where there is no noise, or where gradients are averaged before the step.
  double noise_ratio = 1;
};

// What is done about the noise of a worker's own gradient, where its optimizer divides by it.
enum class NoiseTreatment {
  kNotNeeded,  // the optimizer does not divide by it, or sees everyone's gradients
  kCorrected,  // steps are corrected
  kOff,        // they would be, but an option says no
  kUnknown,  // the optimizer is not one that dssync knows: its steps may be too short by up to the root of noise_ratio
};

// "not needed", "corrected", "off", "unknown optimizer".
std::string name_of(NoiseTreatment treatment);

// What a synchronizer remembers from one iteration to the next. For checkpoints.
struct SyncState {
  std::int64_t iteration = 0;          // that were done
  std::vector<NamedTensor> tensors{};  // what else the method needs, by name
};

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  virtual void before_forward() = 0;
  virtual void after_backward() = 0;
  virtual void after_step() = 0;

  // Optional, before a layer of the forward pass: returns when the averages of these parameters are part of them. Where
  // a whole forward pass has awaited all parameters that it used, before_forward() does not wait for averages any more.
  virtual void await(at::TensorList /*parameters*/) {}

  // Returns when all averages that were started are part of the parameters: before they are read or written between
  // after_step() and the next forward pass.
  virtual void settle() {}

  // Optional, directly before the optimizer's step: whether the step is still to be made (Replica::asks_before_step).
  virtual bool before_step() { return true; }

  // Optional, before the gradients are scaled by something that only the step knows (a GradScaler), or computed within
  // the step: it cannot be made while the backward pass still runs. Throws Error where it has been.
  virtual void need_gradients() {}

  // Between after_backward() and the optimizer's step: scales this worker's gradients so that the norm of everyone's
  // mean gradient is at most `max_norm`. Where only this worker's gradients are known, that norm is an estimate.
  // Returns it, as it was before. Throws InputError unless max_norm > 0.
  virtual double clip_gradients(double max_norm) = 0;

  // The tensors were given other values, such as a checkpoint's: what an average that is under way finds does not
  // concern them any more, and is not added. For this worker alone; the others need not do the same.
  virtual void drop_average() {}

  // One exact average of everyone: afterwards all replicas have the same parameters and buffers. Before evaluating,
  // saving, and at the end. Returns the disagreement that it found: this worker's |x_i - mean|^2.
  virtual double consolidate() = 0;

  // One exact average of everyone of other floating point tensors than the replica's, such as means of parameters over
  // iterations. Collective; after consolidate(), with no iteration between.
  virtual void average_everyone(const std::vector<NamedTensor>& tensors) = 0;

  virtual const SyncMetrics& metrics() const = 0;

  // So many hold values of their own: all workers; where gradients are averaged inside exact regions, these; 1 where
  // all workers have the same values.
  virtual int replicas() const { return 1; }

  virtual NoiseTreatment noise_treatment() const { return NoiseTreatment::kNotNeeded; }

  // ds-sync: what it follows; where it adapts, until the next iteration. Others: nothing.
  virtual const Plan* plan() const = 0;

  // The total S that the plan in force leads to, with what overlap adds; 0 for methods that keep replicas equal.
  virtual double planned_disagreement() const { return 0; }

  // Changes of the plan since the last call; the same on all workers.
  virtual std::vector<PlanChange> take_plan_changes() = 0;

  // How many iterations were done.
  virtual std::int64_t iteration() const = 0;

  // When averages run, decided for this network; kNone for methods that have no choice.
  virtual Overlap overlap() const { return Overlap::kInLine; }

  // What it has to remember beside the replica's own tensors, to go on later as if it had not been interrupted.
  // Between two iterations, before the replica's tensors are read: it waits for averages that are part of them. Tensors
  // are copies.
  virtual SyncState state() = 0;
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
