// How often figures are shared and links probed. Times by hand.
#include "dssync/monitor/pacer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"

namespace dssync {
namespace {

using testing::AdaptiveRun;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::two_racks;

TEST(PacerTest, FiguresAreSharedThreeTimesASecondAtMost) {
  const LinkMonitor quiet(two_racks(50));
  const Pacer pacer;
  EXPECT_EQ(pacer.batch_size(quiet, 0, 0.1), 3);
  EXPECT_EQ(pacer.batch_size(quiet, 0, 0.11), 3);
  EXPECT_EQ(pacer.batch_size(quiet, 0, 0.5), 1);
  EXPECT_EQ(pacer.batch_size(quiet, 0, 0.001), 64);
  EXPECT_EQ(pacer.batch_size(quiet, 0, 0), 64);
}

// The core is cut under a plan in which every link is a suspect then.
TEST(PacerTest, UrgentProbesTakeAQuarterOfTheTimeAtMost) {
  AdaptiveRun::Options options;
  options.probes = false;
  AdaptiveRun run(two_racks(200), options);
  run.iterations(12);
  run.simulation.change_network(run.simulation.now(), two_racks(25));
  for (int i = 0; i < 6 && !run.monitor.undecided(); ++i) run.iterations(1);
  ASSERT_TRUE(run.monitor.undecided());

  Pacer pacer;
  EXPECT_EQ(pacer.batch_size(run.monitor, 100, 0.1), 1);
  EXPECT_THAT(pacer.next_probe(run.monitor, 100, 0.1, true).transfers, Not(IsEmpty()));
  pacer.add({{100, 0, 1, 1e6, 0.02}}, 0.1);
  EXPECT_THAT(pacer.next_probe(run.monitor, 101, 0.1, true).transfers, Not(IsEmpty()));
  // 0.06 s are 2.4 quarters of an iteration; the shorter duration of two ends counts, and the longest transfer.
  pacer.add({{101, 2, 3, 1e6, 0.01}, {101, 0, 1, 1e6, 0.12}, {101, 0, 1, 1e6, 0.06}}, 0.1);
  for (const std::int64_t iteration : {102, 103}) {
    EXPECT_THAT(pacer.next_probe(run.monitor, iteration, 0.1, true).transfers, IsEmpty());
    EXPECT_EQ(pacer.batch_size(run.monitor, iteration, 0.1), 3);
  }
  EXPECT_EQ(pacer.batch_size(run.monitor, 104, 0.1), 1);
  EXPECT_THAT(pacer.next_probe(run.monitor, 104, 0.1, true).transfers, Not(IsEmpty()));
}

}  // namespace
}  // namespace dssync
