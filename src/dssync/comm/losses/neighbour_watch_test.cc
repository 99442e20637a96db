#include "dssync/comm/losses/neighbour_watch.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr milliseconds kWatchedBeat{500};
constexpr milliseconds kLongestSilence{2500};

NeighbourWatch::Time at(int ms) { return NeighbourWatch::Time(std::chrono::hours(1)) + milliseconds(ms); }

TEST(NeighbourWatchTest, WatchesTheNextTwoAroundTheRing) {
  EXPECT_THAT(NeighbourWatch(1, 5, kWatchedBeat, kLongestSilence).watched(), ElementsAre(2, 3));
  EXPECT_THAT(NeighbourWatch(4, 5, kWatchedBeat, kLongestSilence).watched(), ElementsAre(0, 1));
  EXPECT_THAT(NeighbourWatch(0, 2, kWatchedBeat, kLongestSilence).watched(), ElementsAre(1));
  EXPECT_THAT(NeighbourWatch(0, 1, kWatchedBeat, kLongestSilence).watched(), IsEmpty());
}

TEST(NeighbourWatchTest, LooksBeyondThoseWhoAreGone) {
  NeighbourWatch watch(0, 5, kWatchedBeat, kLongestSilence);
  watch.leave_out(1);
  EXPECT_THAT(watch.watched(), ElementsAre(2, 3));
  watch.leave_out(3);
  EXPECT_THAT(watch.watched(), ElementsAre(2, 4));
  watch.leave_out(4);
  watch.leave_out(2);
  EXPECT_THAT(watch.watched(), IsEmpty());
}

TEST(NeighbourWatchTest, EveryWorkerIsWatchedByTwo) {
  std::map<Rank, int> watchers;
  for (Rank self = 0; self < 7; ++self) {
    for (const Rank rank : NeighbourWatch(self, 7, kWatchedBeat, kLongestSilence).watched()) ++watchers[rank];
  }
  EXPECT_EQ(watchers.size(), 7u);
  for (const auto& [rank, count] : watchers) EXPECT_EQ(count, 2) << rank;
}

TEST(NeighbourWatchTest, APulseThatStandsStillIsSilence) {
  NeighbourWatch watch(0, 3, kWatchedBeat, kLongestSilence);
  for (int now = 0; now <= 2500; now += 500) {
    watch.begin_look(at(now));
    watch.saw(1, "7 0", at(now));
    watch.saw(2, std::to_string(now), at(now));  // slow in its iterations, but it beats
    EXPECT_THAT(watch.silent(at(std::min(now, 2499))), IsEmpty()) << now;
  }
  EXPECT_THAT(watch.silent(at(2500)), ElementsAre(1));
  watch.leave_out(1);
  EXPECT_THAT(watch.silent(at(2500)), IsEmpty());
}

TEST(NeighbourWatchTest, WhoHasNotBegunToBeatIsNotSilent) {
  NeighbourWatch watch(0, 2, kWatchedBeat, kLongestSilence);
  for (int now = 0; now <= 60'000; now += 500) watch.begin_look(at(now));
  EXPECT_FALSE(watch.has_seen(1));
  EXPECT_THAT(watch.silent(at(60'000)), IsEmpty());
}

TEST(NeighbourWatchTest, ALateLookIsTheWatchersOwnFault) {
  NeighbourWatch watch(0, 2, kWatchedBeat, kLongestSilence);
  watch.begin_look(at(0));
  watch.saw(1, "7 0", at(0));
  watch.begin_look(at(10'000));  // this worker was stopped, perhaps the other one as well
  watch.saw(1, "7 0", at(10'000));
  EXPECT_THAT(watch.silent(at(10'000)), IsEmpty());
  for (int now = 10'500; now < 12'500; now += 500) watch.begin_look(at(now));
  EXPECT_THAT(watch.silent(at(12'499)), IsEmpty());
  EXPECT_THAT(watch.silent(at(12'500)), ElementsAre(1));
}

}  // namespace
}  // namespace dssync
