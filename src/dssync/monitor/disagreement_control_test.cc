// The limit on S follows the measured noise and the learning rate.
#include "dssync/monitor/disagreement_control.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

// A training run in which disagreement is exactly what theory says.
struct Training {
  double learning_rate = 0.1;
  double variance = 1;
  double norm = 10;
  double missed = 0;
  std::int64_t iteration = 0;

  double run(DisagreementControl& control, int iterations) {
    for (int i = 0; i < iterations; i += 5) {
      iteration += 5;
      const double s = control.limit();
      control.update({iteration, learning_rate, learning_rate * learning_rate * variance * (s + missed), norm, s});
    }
    return control.limit();
  }
};

DisagreementOptions options() {
  DisagreementOptions options;
  options.permitted = 0.8;
  options.target = 0.01;
  options.patience_iterations = 20;
  return options;
}

TEST(DisagreementControlTest, StartsTight) {
  const DisagreementControl control(options());
  EXPECT_DOUBLE_EQ(control.limit(), 0.05);
}

TEST(DisagreementControlTest, LoosensStepByStepAsFarAsPermitted) {
  DisagreementControl control(options());
  Training training;
  training.variance = 0.1;  // the target would allow S = 10
  EXPECT_DOUBLE_EQ(training.run(control, 20), 0.05);
  EXPECT_DOUBLE_EQ(training.run(control, 10), 0.1);
  EXPECT_DOUBLE_EQ(training.run(control, 200), 0.8);
  EXPECT_THAT(control.explanation(), ::testing::StartsWith("limit on S 0.8 instead of 0.4"));
}

TEST(DisagreementControlTest, StaysWhereTheTargetIs) {
  DisagreementControl control(options());
  Training training;
  training.variance = 2.5;  // S = 0.01^2 * 10^2 / (0.1^2 * 2.5) = 0.4; with the margin 0.256
  EXPECT_DOUBLE_EQ(training.run(control, 500), 0.2);
}

// S + 0.75 = 0.01^2 * 10^2 / (0.1^2 * 0.8) = 1.25, so S = 0.5; with the margin 0.64 * 0.5 = 0.32.
TEST(DisagreementControlTest, WhatOverlappingMissesIsNoReasonForATighterLimit) {
  DisagreementOptions overlapped = options();
  overlapped.missed = 0.75;
  DisagreementControl control(overlapped);
  Training training;
  training.variance = 0.8;
  training.missed = 0.75;
  EXPECT_DOUBLE_EQ(training.run(control, 500), 0.2);
  training.variance = 1.25;  // S + 0.75 = 0.8
  EXPECT_DOUBLE_EQ(training.run(control, 5), 0.05);
  training.variance = 2;  // what is missed alone is too much
  EXPECT_DOUBLE_EQ(training.run(control, 500), 0.05);
}

TEST(DisagreementControlTest, TightensAtOnceWhenTheLearningRateGrows) {
  DisagreementControl control(options());
  Training training;
  training.variance = 0.5;
  ASSERT_DOUBLE_EQ(training.run(control, 500), 0.8);
  training.learning_rate = 0.4;
  EXPECT_DOUBLE_EQ(training.run(control, 5), 0.1);
  training.learning_rate = 0.01;
  EXPECT_DOUBLE_EQ(training.run(control, 10), 0.1);
  EXPECT_DOUBLE_EQ(training.run(control, 500), 0.8);
}

TEST(DisagreementControlTest, OneQuietMeasurementLoosensNothing) {
  DisagreementControl control(options());
  Training training;
  training.variance = 2.5;
  ASSERT_DOUBLE_EQ(training.run(control, 500), 0.2);
  training.variance = 0.01;
  training.run(control, 5);
  training.variance = 2.5;
  EXPECT_DOUBLE_EQ(training.run(control, 100), 0.2);
}

TEST(DisagreementControlTest, DoesNotSwingAroundTheTarget) {
  DisagreementControl control(options());
  Training training;
  int changes = 0;
  double limit = control.limit();
  for (int i = 0; i < 400; ++i) {
    training.variance = 2.5 * std::exp(0.3 * std::sin(i * 1.7));
    const double next = training.run(control, 5);
    changes += next != limit ? 1 : 0;
    limit = next;
  }
  EXPECT_LE(changes, 4);
}

TEST(DisagreementControlTest, NothingMeasuredMeansNoLoosening) {
  DisagreementControl control(options());
  for (std::int64_t t = 0; t < 500; t += 5) control.update({t, 0.1, 0, 10, 0.05});
  EXPECT_DOUBLE_EQ(control.limit(), 0.05);
  for (std::int64_t t = 500; t < 1000; t += 5) control.update({t, 0.1, std::nan(""), 10, 0.05});
  EXPECT_DOUBLE_EQ(control.limit(), 0.05);
}

// An exact plan shows no disagreement at all: the next looser one has to be tried to learn something.
TEST(DisagreementControlTest, LeavesExactPlans) {
  DisagreementControl control(options());
  for (std::int64_t t = 0; t < 30; t += 5) control.update({t, 0.1, 0, 10, 0});
  EXPECT_DOUBLE_EQ(control.limit(), 0.1);
}

}  // namespace
}  // namespace dssync
