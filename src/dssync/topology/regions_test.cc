#include "dssync/topology/regions.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "dssync/topology/testing.h"

namespace dssync {
namespace {

TEST(RegionsTest, FollowsSwitchesAndHosts) {
  const std::vector<Region> regions = find_regions(testing::three_levels(2, 3, 2, 4, 1, 1, 1));
  // Root, 2 sites, 6 racks, 12 hosts of four workers.
  ASSERT_EQ(regions.size(), 21U);
  EXPECT_EQ(regions[0].parts(), 2);
  EXPECT_EQ(regions[0].members.size(), 48U);
  EXPECT_EQ(
      std::count_if(regions.begin(), regions.end(), [](const Region& region) { return region.loose.size() == 4; }), 12);
}

TEST(RegionsTest, APlaceWithOnePartIsNoRegion) {
  // One rack below the core: the rack is everything.
  const std::vector<Region> regions = find_regions(testing::racks(1, 4, 1, 1));
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].loose.size(), 4U);
}

TEST(RegionsTest, SlowNicStandsBesideTheFastPart) {
  const std::vector<Region> regions = find_regions(testing::hosts_with_nics({10, 10, 1, 10}));
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].loose, (std::vector<int>{2}));
  EXPECT_EQ(regions[1].members, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(regions[1].parent, 0);
}

TEST(RegionsTest, SingleWorkerIsTheWholeTree) {
  const std::vector<Region> regions = find_regions(testing::flat(1));
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].members, (std::vector<int>{0}));
}

TEST(RegionsTest, PartsDivideEveryRegionOfRandomTrees) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Topology topology = testing::random_tree(seed, 256);
    const std::vector<Region> regions = find_regions(topology);
    ASSERT_EQ(regions.front().members.size(), static_cast<std::size_t>(topology.workers()));
    for (std::size_t r = 0; r < regions.size(); ++r) {
      std::vector<int> below = regions[r].loose;
      for (const int child : regions[r].children) {
        const Region& inner = regions[static_cast<std::size_t>(child)];
        EXPECT_EQ(inner.parent, static_cast<int>(r));
        EXPECT_EQ(inner.depth, regions[r].depth + 1);
        EXPECT_GE(inner.parts(), 2) << "seed " << seed;
        below.insert(below.end(), inner.members.begin(), inner.members.end());
      }
      std::sort(below.begin(), below.end());
      EXPECT_EQ(below, regions[r].members) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dssync
