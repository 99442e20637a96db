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
  Recorder(std::vector<std::string>& moments, Overlap overlap) : moments_(moments), overlap_(overlap) {}

  void before_forward() override { moments_.emplace_back("before_forward"); }
  void after_backward() override { moments_.emplace_back("after_backward"); }
  void after_step() override { moments_.emplace_back("after_step"); }
  double clip_gradients(double max_norm) override {
    moments_.emplace_back("clip_gradients");
    return max_norm;
  }
  void drop_average() override { moments_.emplace_back("drop_average"); }
  void average_everyone(const std::vector<NamedTensor>&) override {}
  double consolidate() override {
    moments_.emplace_back("consolidate");
    return 0;
  }
  const SyncMetrics& metrics() const override { return metrics_; }
  const Plan* plan() const override { return nullptr; }
  std::vector<PlanChange> take_plan_changes() override { return {}; }
  std::int64_t iteration() const override { return 0; }
  SyncState state() override { return {}; }
  Overlap overlap() const override { return overlap_; }
  bool before_step() override { return overlap_ != Overlap::kLayered; }
  void need_gradients() override { moments_.emplace_back("need_gradients"); }
  void load_state(const SyncState& /*state*/) override { moments_.emplace_back("load_state"); }

 private:
  std::vector<std::string>& moments_;
  const Overlap overlap_;
  SyncMetrics metrics_;
};

class StepperTest : public ::testing::Test {
 protected:
  Stepper stepper(Overlap overlap) { return Stepper(std::make_unique<Recorder>(moments_, overlap)); }

  static void step(Stepper& stepper) {
    stepper.before_step();
    stepper.after_step();
  }

  std::vector<std::string> moments_;
};

TEST_F(StepperTest, InLineAnIterationBeginsWithItsStep) {
  Stepper stepper = this->stepper(Overlap::kInLine);
  step(stepper);
  stepper.drop_average();  // nothing is under way
  step(stepper);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward",
                                    "after_backward", "after_step"));
}

TEST_F(StepperTest, ClippingComesOnceTheGradientsAreComplete) {
  Stepper stepper = this->stepper(Overlap::kInLine);
  stepper.clip_gradients(1);
  step(stepper);
  step(stepper);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "clip_gradients", "after_step",
                                    "before_forward", "after_backward", "after_step"));
}

TEST_F(StepperTest, OverlappedTheNextOneBeginsRightAfterTheStep) {
  Stepper stepper = this->stepper(Overlap::kCombine);
  step(stepper);
  step(stepper);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward",
                                    "after_backward", "after_step", "before_forward"));
}

TEST_F(StepperTest, LayeredAnIterationGoesOnAfterConsolidating) {
  Stepper stepper = this->stepper(Overlap::kLayered);
  step(stepper);
  stepper.consolidate();
  EXPECT_FALSE(stepper.before_step()) << "as the synchronizer says";
  stepper.after_step();
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "after_step", "before_forward", "consolidate",
                                    "after_backward", "after_step", "before_forward"));
}

TEST_F(StepperTest, GradientsThatTheStepChangesAreNeededBefore) {
  Stepper stepper = this->stepper(Overlap::kInLine);
  stepper.before_step(false);
  EXPECT_THAT(moments_, ElementsAre("before_forward", "after_backward", "need_gradients"));
}

TEST_F(StepperTest, WhatConsolidatingOrLoadingMakesUselessIsBegunAgain) {
  Stepper stepper = this->stepper(Overlap::kCombine);
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
