// Emulated computing takes its time, in the right places.
#include "dssync/training/pace.h"

#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/training/models/models.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

TEST(PaceTest, SpreadsTheTimeOverThePasses) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape());
  std::vector<double> arrivals;  // of gradients; registered before the pace, so each is seen before its sleep
  const auto start = Clock::now();
  for (const at::Tensor& parameter : model->parameters()) {
    parameter.register_hook([&](const at::Tensor&) { arrivals.push_back(since(start)); });
  }
  Pace pace(*model, milliseconds(300));
  pace.begin();
  const at::Tensor loss = model->forward(at::randn({2, 1, 28, 28})).sum();
  pace.forward_done();
  EXPECT_GE(since(start), 0.1);
  loss.backward();
  pace.backward_done();
  EXPECT_GE(since(start), 0.3);
  ASSERT_EQ(arrivals.size(), 6u);
  // The k-th gradient of six is ready a sixth of 0.2 s later than the one before.
  for (std::size_t index = 0; index < arrivals.size(); ++index) {
    EXPECT_GE(arrivals[index], 0.1 + 0.2 * static_cast<double>(index) / 6 - 0.001);
  }
}

TEST(PaceTest, LayersTakeTheirPartsAndWaitingIsNoComputing) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape());
  Pace pace(*model, milliseconds(300));
  const auto start = Clock::now();
  pace.begin();
  pace.layers_done(1, 2);
  EXPECT_GE(since(start), 0.05);
  pace.exclude(milliseconds(60));
  pace.forward_done();
  EXPECT_GE(since(start), 0.16);
}

TEST(PaceTest, WithoutADurationDoesNothing) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape());
  Pace pace(*model, Seconds(0));
  pace.begin();
  model->forward(at::randn({2, 1, 28, 28})).sum().backward();
  pace.backward_done();
  SUCCEED();
}

TEST(PaceTest, LeavesNothingBehind) {
  const auto model = make_model({.name = "mlp"}, 1, ImageShape());
  { const Pace pace(*model, milliseconds(1)); }
  model->forward(at::randn({2, 1, 28, 28})).sum().backward();  // a hook of the pace would use what is gone
  EXPECT_TRUE(model->parameters().front().grad().defined());
}

}  // namespace
}  // namespace dssync
