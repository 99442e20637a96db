// A synchronizer for programs that know two moments only: before and after the optimizer's step. It begins iterations
// by itself: where averages overlap computing, the next one begins right after a step, so that they also hide under
// what the program does before its forward pass. Not thread-safe; calls are collective as those of the synchronizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dssync/sync/synchronizer.h"

namespace dssync {

class Stepper {
 public:
  explicit Stepper(std::unique_ptr<Synchronizer> synchronizer) : synchronizer_(std::move(synchronizer)) {}

  // Before the step, where gradients are clipped: as Synchronizer::clip_gradients.
  double clip_gradients(double max_norm);
  // Whether the step is still to be made, as Synchronizer::before_step. `is_final`: the gradients are what the step
  // uses; they are not (Synchronizer::need_gradients) where a GradScaler or a closure changes them within the step.
  bool before_step(bool is_final = true);
  void after_step();

  // From now on an iteration begins right after the step before it in any case, so that gradients can be averaged while
  // the backward pass brings them (Replica::has_one_backward_pass).
  void begin_early() { begins_early_ = true; }

  // As Synchronizer::drop_average. Where nothing is under way, before_step() starts with the new values anyway.
  void drop_average();

  double consolidate();
  // As Synchronizer's.
  void average_everyone(const std::vector<NamedTensor>& tensors) { synchronizer_->average_everyone(tensors); }
  void await(at::TensorList parameters) { synchronizer_->await(parameters); }
  void settle() { synchronizer_->settle(); }
  SyncState state() { return synchronizer_->state(); }
  void load_state(const SyncState& state);

  const Plan& plan() const { return *synchronizer_->plan(); }
  Overlap overlap() const { return synchronizer_->overlap(); }
  double planned_disagreement() const { return synchronizer_->planned_disagreement(); }
  std::int64_t iteration() const { return synchronizer_->iteration(); }
  SyncMetrics metrics() const;  // of the last whole iteration; what averages tell, of the last that are done
  NoiseTreatment noise_treatment() const { return synchronizer_->noise_treatment(); }
  // So far: the iteration, and why.
  const std::vector<std::pair<std::int64_t, std::string>>& plan_changes() const { return plan_changes_; }

 private:
  void finish_backward();
  void forget_average();

  std::unique_ptr<Synchronizer> synchronizer_;
  bool begins_early_ = false;
  bool has_begun_ = false;      // the iteration that the next step belongs to
  bool has_gradients_ = false;  // the synchronizer knows that they are complete
  SyncMetrics metrics_;
  std::vector<std::pair<std::int64_t, std::string>> plan_changes_;
};

}  // namespace dssync
