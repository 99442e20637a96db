#include "dssync/sync/stepper.h"

namespace dssync {

void Stepper::before_step() {
  if (!has_begun_) synchronizer_->before_forward();
  has_begun_ = true;
  synchronizer_->after_backward();
}

void Stepper::after_step() {
  synchronizer_->after_step();
  metrics_ = synchronizer_->metrics();
  for (const PlanEvent& event : synchronizer_->take_plan_events()) {
    plan_changes_.emplace_back(event.iteration, event.change.explanation);
  }
  has_begun_ = false;
  if (!overlap_) return;
  synchronizer_->before_forward();
  has_begun_ = true;
}

void Stepper::drop_average() {
  if (has_begun_) synchronizer_->drop_average();
}

double Stepper::consolidate() {
  has_begun_ = false;
  return synchronizer_->consolidate();
}

void Stepper::load_state(const SyncState& state) {
  has_begun_ = false;
  synchronizer_->load_state(state);
}

}  // namespace dssync
