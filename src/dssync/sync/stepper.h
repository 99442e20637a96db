// A synchronizer for programs that know two moments only: before and after the optimizer's step. It begins iterations
// by itself. Overlapped, the next average starts right after the last one was used, so that it also hides under what
// the program does before its forward pass. Not thread-safe; calls are collective as those of the synchronizer.
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
  Stepper(std::unique_ptr<Synchronizer> synchronizer, bool overlap)
      : synchronizer_(std::move(synchronizer)), overlap_(overlap) {}

  void before_step();
  void after_step();

  // As Synchronizer::drop_average. Where nothing is under way, before_step() starts with the new values anyway.
  void drop_average();

  double consolidate();
  SyncState state() const { return synchronizer_->state(); }
  void load_state(const SyncState& state);

  const Plan& plan() const { return *synchronizer_->plan(); }
  std::int64_t iteration() const { return synchronizer_->iteration(); }
  const SyncMetrics& metrics() const { return metrics_; }  // of the last whole iteration
  // So far: the iteration, and why.
  const std::vector<std::pair<std::int64_t, std::string>>& plan_changes() const { return plan_changes_; }

 private:
  std::unique_ptr<Synchronizer> synchronizer_;
  const bool overlap_;
  bool has_begun_ = false;  // the iteration that the next step belongs to
  SyncMetrics metrics_;
  std::vector<std::pair<std::int64_t, std::string>> plan_changes_;
};

}  // namespace dssync
