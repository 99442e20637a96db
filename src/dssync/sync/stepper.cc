#include "dssync/sync/stepper.h"

namespace dssync {

void Stepper::finish_backward() {
  if (!has_begun_) synchronizer_->before_forward();
  has_begun_ = true;
  if (!has_gradients_) synchronizer_->after_backward();
  has_gradients_ = true;
}

double Stepper::clip_gradients(double max_norm) {
  finish_backward();
  return synchronizer_->clip_gradients(max_norm);
}

bool Stepper::before_step(bool is_final) {
  finish_backward();
  if (!is_final) synchronizer_->need_gradients();
  return synchronizer_->before_step();
}

void Stepper::after_step() {
  synchronizer_->after_step();
  has_gradients_ = false;
  metrics_ = synchronizer_->metrics();
  for (const PlanChange& change : synchronizer_->take_plan_changes()) {
    plan_changes_.emplace_back(change.iteration, change.explanation);
  }
  has_begun_ = false;
  if (synchronizer_->overlap() == Overlap::kInLine && !begins_early_) return;
  synchronizer_->before_forward();
  has_begun_ = true;
}

SyncMetrics Stepper::metrics() const {
  SyncMetrics metrics = metrics_;
  metrics.disagreement = synchronizer_->metrics().disagreement;
  metrics.parameter_norm = synchronizer_->metrics().parameter_norm;
  return metrics;
}

void Stepper::drop_average() {
  if (has_begun_) synchronizer_->drop_average();
}

// An average of values that others have replaced is begun anew.
void Stepper::forget_average() {
  if (synchronizer_->overlap() != Overlap::kLayered) has_begun_ = has_gradients_ = false;
}

double Stepper::consolidate() {
  forget_average();
  return synchronizer_->consolidate();
}

void Stepper::load_state(const SyncState& state) {
  forget_average();
  synchronizer_->load_state(state);
}

}  // namespace dssync
