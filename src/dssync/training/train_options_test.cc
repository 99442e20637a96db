// How long a run is, and what makes it the same run, with numbers worked out by hand.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/training/option_fields.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr std::int64_t kPerEpoch = 100;

TEST(RunLengthTest, FollowsTheEpochsOrElseTheIterations) {
  TrainOptions options;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).total_iterations, 400);
  options.epochs = 3;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).total_iterations, 300);
  options.max_iterations = 250;  // stops early; the rate goes on
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).total_iterations, 300);
  options.epochs.reset();
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).total_iterations, 250);
  options.max_iterations = 900;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).total_iterations, 900);
}

TEST(RunLengthTest, TheWarmUpFollowsTheLength) {
  TrainOptions options;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 50);
  options.warmup_epochs = 1.25;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 125);
  options.max_iterations = 60;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 60);
  options.warmup_epochs.reset();
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 6);
  options.warmup_iterations = 20;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 20);
  options.epochs = 4;
  EXPECT_EQ(learning_rate_of(options, kPerEpoch).warmup_iterations, 20);
  options.warmup_epochs = 1;
  EXPECT_THAT(message_of<InputError>([&] { check(options); }), HasSubstr("in epochs and in iterations"));
}

// The value of an option in the identity, or nothing.
std::string identity(const TrainOptions& options, const std::string& name) {
  for (const auto& [key, value] : identity_of(options, {}, 8)) {
    if (key == name) return value;
  }
  return "";
}

TEST(RunIdentityTest, HasWhatDecidesTheNumbers) {
  TrainOptions options;
  options.data = {.name = "text", .context = 32};
  options.model = {.name = "transformer", .transformer = {.layers = 3, .width = 48, .heads = 6}};
  options.optimizer = "adamw";
  options.betas = {0.9, 0.95};
  options.clip_norm = 1;
  options.max_iterations = 600;
  options.warmup_iterations = 50;
  EXPECT_EQ(identity(options, "context"), "32");
  EXPECT_EQ(identity(options, "layers"), "3");
  EXPECT_EQ(identity(options, "width"), "48");
  EXPECT_EQ(identity(options, "heads"), "6");
  EXPECT_EQ(identity(options, "beta2"), "0.95");
  EXPECT_EQ(identity(options, "clip norm"), "1");
  EXPECT_EQ(identity(options, "iterations"), "600");
  EXPECT_EQ(identity(options, "epochs"), "");
  EXPECT_EQ(identity(options, "warmup iterations"), "50");
}

TEST(RunIdentityTest, LeavesOutWhereAnInterruptedRunStops) {
  TrainOptions options;
  options.epochs = 4;
  const RunIdentity whole = identity_of(options, {}, 8);
  options.max_iterations = 10;
  EXPECT_EQ(identity_of(options, {}, 8), whole);
  EXPECT_EQ(identity(options, "layers"), "");
  EXPECT_EQ(identity(options, "beta1"), "");
}

}  // namespace
}  // namespace dssync
