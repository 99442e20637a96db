#include "dssync/topology/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;

TEST(LevelsTest, GoFromHostsToTheRoot) {
  const Topology topology = testing::three_levels(2, 2, 1, 2, 1, 1, 1);
  EXPECT_EQ(top_level(topology), 3);
  EXPECT_THAT(places_at(topology, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_EQ(places_at(topology, 1), places_at(topology, 0));  // one host in a rack
  EXPECT_THAT(places_at(topology, 2), ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7)));
  EXPECT_THAT(places_at(topology, 3), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  EXPECT_EQ(places_at(topology, 9), places_at(topology, 3));
}

// A host that is cabled to the core sits in no rack.
TEST(LevelsTest, AHostBesideRacksIsAPlaceOfItsOwn) {
  using testing::make_host;
  using testing::make_switch;
  const Topology topology = Topology::build(
      {make_switch("core", "", 0), make_switch("rack", "core", 1), make_switch("empty", "rack", 1)},
      {make_host("alone", "core", 1), make_host("r0", "rack", 1), make_host("r1", "rack", 1, 2)}, "test");
  EXPECT_EQ(top_level(topology), 2);
  EXPECT_THAT(places_at(topology, 0), ElementsAre(ElementsAre(1), ElementsAre(2, 3), ElementsAre(0)));
  EXPECT_THAT(places_at(topology, 1), ElementsAre(ElementsAre(1, 2, 3), ElementsAre(0)));
  EXPECT_THAT(places_at(topology, 2), ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(LevelsTest, PlacesDivideTheWorkersOfAnyTree) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Topology topology = testing::random_tree(seed, 40);
    for (int level = 0; level <= top_level(topology); ++level) {
      int workers = 0;
      for (const std::vector<Rank>& place : places_at(topology, level)) workers += static_cast<int>(place.size());
      EXPECT_EQ(workers, topology.workers());
    }
    EXPECT_EQ(places_at(topology, top_level(topology)).size(), 1U);
  }
}

}  // namespace
}  // namespace dssync
