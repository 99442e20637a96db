#include "dssync/sync/stepper.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;

// Writes down which moments come.
class Recorder final : public Synchronizer {
 public:
  explicit Recorder(std::vector<std::string>& moments) : moments_(moments) {}

  void before_forward() override { moments_.emplace_back("before_forward"); }
  void after_backward() override { moments_.emplace_back("after_backward"); }
  void after_step() override { moments_.emplace_back("after_step"); }
  void drop_average() override { moments_.emplace_back("drop_average"); }
  double consolidate() override {
    moments_.emplace_back("consolidate");
    return 0;
  }
  const SyncMetrics& metrics() const override { return metrics_; }
  const Plan* plan() const override { return nullptr; }
  std::vector<PlanEvent> take_plan_events() override { return {}; }
  std::int64_t iteration() const override { return 0; }
  SyncState state() const override { return {}; }
  void load_state(const SyncState& /*state*/) override { moments_.emplace_back("load_state"); }

 private:
  std::vector<std::string>& moments_;
  SyncMetrics metrics_;
};

class StepperTest : public ::testing::Test {
 protected:
  Stepper stepper(bool overlap) { return {std::make_unique<Recorder>(moments_), overlap}; }

  static void step(Stepper& stepper) {
    stepper.before_step();
    stepper.after_step();
  }

  std::vector<std::string> moments_;
};

TEST_F(StepperTest, InLineAnIterationBeginsWithItsStep) {
  Stepper stepper = this->stepper(false);
  step(stepper);
  stepper.drop_average();  // nothing is under way
  step(stepper);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward",
                                    "after_backward", "after_step"));
}

TEST_F(StepperTest, OverlappedTheNextOneBeginsRightAfterTheStep) {
  Stepper stepper = this->stepper(true);
  step(stepper);
  step(stepper);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward",
                                    "after_backward", "after_step", "before_forward"));
}

TEST_F(StepperTest, WhatConsolidatingOrLoadingMakesUselessIsBegunAgain) {
  Stepper stepper = this->stepper(true);
  step(stepper);
  stepper.drop_average();
  stepper.consolidate();
  stepper.before_step();
  stepper.load_state({});
  stepper.before_step();
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward", "drop_average",
                                    "consolidate", "before_forward", "after_backward", "load_state", "before_forward",
                                    "after_backward"));
}

}  // namespace
}  // namespace dssync
