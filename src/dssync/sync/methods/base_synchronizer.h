// What all methods share: the flat layout, the engine, the exact average of everyone, and the bookkeeping around the
// four moments. A method overrides what it does at each of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "dssync/collective/engine.h"
#include "dssync/collective/program/chain.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

class BaseSynchronizer : public Synchronizer {
 public:
  // Collective: compares the options that the method looks at, the network and the model with the other workers', and
  // takes over rank 0's values.
  BaseSynchronizer(World& world, const Replica& replica, const Topology& topology, Timeline* timeline,
                   const SyncOptions& options);

  void before_forward() final;
  void after_backward() final;
  void after_step() final;
  void need_gradients() final { on_gradients_needed(); }
  double clip_gradients(double max_norm) final;
  double consolidate() final;
  void average_everyone(const std::vector<NamedTensor>& tensors) final;
  const SyncMetrics& metrics() const final { return metrics_; }
  int replicas() const override { return world_.size(); }
  const Plan* plan() const override { return nullptr; }
  std::vector<PlanChange> take_plan_changes() override { return {}; }
  std::int64_t iteration() const final { return iteration_; }
  SyncState state() final;
  void load_state(const SyncState& state) final;

 protected:
  virtual void on_before_forward() {}
  virtual void on_after_backward() {}
  virtual void on_after_step() {}
  // The last moment of an iteration that took so long. metrics_ are complete.
  virtual void on_iteration_done(Seconds /*taken*/) {}
  // All gradients are needed before the step.
  virtual void on_gradients_needed() {}
  // What the method remembers beside the iteration.
  virtual void add_state(SyncState& /*state*/) const {}
  virtual void take_state(const SyncState& /*state*/) {}
  // What is known of the squared norm of everyone's mean gradient, from that of this worker's.
  virtual double squared_norm_of_mean(double own) { return own; }
  // Makes all parameters the same; returns this worker's squared distance from where it was.
  virtual double consolidate_parameters();

  // Of all parameters, for plans and lowering.
  double model_bytes() const { return static_cast<double>(std::max<std::int64_t>(1, parameters_.bytes())); }

  // That the network needs for one average of this vector.
  static Seconds seconds_for(const at::Tensor& vector, const Chain& chain) {
    return Seconds(static_cast<double>(vector.nbytes()) * chain.seconds_per_byte);
  }

  // Waits for all averages that were started, or for these. Where one is void, gives up all channels and throws its
  // cause.
  void wait();
  void wait(const std::vector<AverageId>& averages);

  // Counts as time that the training thread was kept. Gradient mode is off in `work`.
  template <typename Work>
  void timed(Work work) {
    const at::NoGradGuard no_grad;
    const Clock::time_point start = Clock::now();
    work();
    metrics_.sync_seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }

  // For traffic outside of the engine.
  void count_sent(std::int64_t bytes) { bytes_sent_ += bytes; }
  void record(const char* stage, Clock::time_point start);
  void record_wait(const char* what, Clock::time_point start);
  void record_change(const std::string& why);

  World& world_;
  Replica replica_;
  const Topology topology_;
  TensorSet parameters_;
  Engine engine_;
  SyncMetrics metrics_;

  // Hands rank 0's values of these tensors to all. Collective.
  void take_over_from_rank_0(const std::vector<at::Tensor>& tensors);

  // The one that averages everyone, by the cheaper of ring and hierarchy. Made when first needed; collective.
  const std::shared_ptr<const Chain>& everyone();

 private:
  void finish_wait(const std::vector<Outcome>& outcomes, Clock::time_point start);
  void adopt_from_rank_0();
  void average_buffers();
  void average_floating(const std::vector<NamedTensor>& tensors);
  template <typename Work>
  void outside_of_iterations(Work work);

  Timeline* timeline_;
  std::shared_ptr<const Chain> everyone_;  // null: not made yet
  std::int64_t iteration_ = 0;
  Clock::time_point iteration_start_;
  std::int64_t bytes_sent_ = 0;  // in this iteration, outside of the engine
};

}  // namespace dssync
