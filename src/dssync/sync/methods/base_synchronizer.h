// What all methods share: the flat layout, the engine, the exact average of everyone, and the bookkeeping around the
// four moments. A method overrides what it does at each of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  double consolidate() final;
  const SyncMetrics& metrics() const final { return metrics_; }
  const Plan* plan() const override { return nullptr; }
  std::vector<PlanEvent> take_plan_events() override { return {}; }
  std::int64_t iteration() const final { return iteration_; }
  SyncState state() const final;
  void load_state(const SyncState& state) final;

 protected:
  virtual void on_before_forward() {}
  virtual void on_after_backward() {}
  virtual void on_after_step() {}
  // The last moment of an iteration that took so long. metrics_ are complete.
  virtual void on_iteration_done(Seconds /*taken*/) {}
  // What the method remembers beside the iteration.
  virtual void add_state(SyncState& /*state*/) const {}
  virtual void take_state(const SyncState& /*state*/) {}
  // Makes all parameters the same; returns this worker's squared distance from where it was.
  virtual double consolidate_parameters();

  // Of all parameters, for plans and lowering.
  double model_bytes() const { return static_cast<double>(std::max<std::int64_t>(1, parameters_.bytes())); }

  // That the network needs for one average of this vector.
  static Seconds seconds_for(const at::Tensor& vector, const Chain& chain) {
    return Seconds(static_cast<double>(vector.nbytes()) * chain.seconds_per_byte);
  }

  // Waits for all averages that were started. Where one is void, gives up all channels and throws its cause.
  void wait();

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

  // The one that averages everyone, by the cheaper of ring and hierarchy. Made when first needed; collective.
  const std::shared_ptr<const Chain>& everyone();

 private:
  template <typename Moment>
  void timed(Moment moment);
  void adopt_from_rank_0();
  void average_buffers();
  void take_over_from_rank_0(const std::vector<at::Tensor>& tensors);

  Timeline* timeline_;
  std::shared_ptr<const Chain> everyone_;  // null: not made yet
  std::int64_t iteration_ = 0;
  Clock::time_point iteration_start_;
  std::int64_t bytes_sent_ = 0;         // in this iteration, outside of the engine
  LossSubscription loss_subscription_;  // last: it uses the engine
};

}  // namespace dssync
