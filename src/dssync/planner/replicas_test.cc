#include "dssync/planner/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string problem_with(const std::vector<Group>& groups, const Topology& topology) {
  try {
    const Replicas replicas(topology, groups);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ReplicasTest, WithoutRegionsEveryWorkerIsOne) {
  const Replicas replicas(testing::racks(2, 2, 1, 1, 2));
  EXPECT_EQ(replicas.count(), 8);
  EXPECT_FALSE(replicas.has_regions());
  const Replicas::Weighing weighing = replicas.weighing_of({1, 4, 5}, 4);
  EXPECT_EQ(weighing.weight, 1);
  EXPECT_EQ(weighing.divisor, 3);
}

// Racks of two and of four: (2 x + 4 y) / 6 = (x + 2 y) / 3.
TEST(ReplicasTest, AnAverageIsThatOfItsWorkers) {
  using testing::make_host;
  using testing::make_switch;
  const Topology topology = Topology::build(
      {make_switch("core", "", 0), make_switch("a", "core", 1), make_switch("b", "core", 1)},
      {make_host("a0", "a", 1), make_host("a1", "a", 1), make_host("b0", "b", 1, 3), make_host("b1", "b", 1)}, "test");
  const Replicas replicas(topology, places_at(topology, 1));
  const Group everyone = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(replicas.count_in(everyone), 2);
  EXPECT_EQ(replicas.weighing_of(everyone, 1).weight, 1);
  EXPECT_EQ(replicas.weighing_of(everyone, 5).weight, 2);
  EXPECT_EQ(replicas.weighing_of(everyone, 5).divisor, 3);
  EXPECT_THAT(replicas.ranks_of({1}), ElementsAre(2, 3, 4, 5));
}

TEST(ReplicasTest, ArePlacesOfTheNetwork) {
  const Topology topology = testing::racks(2, 2, 1, 1, 2);
  EXPECT_EQ(problem_with({{0, 1}, {2}, {3}, {4, 5, 6, 7}}, topology), "");
  EXPECT_THAT(problem_with({{0, 1, 2}, {3}, {4, 5, 6, 7}}, topology),
              HasSubstr("ranks 0 to 2 cannot be one replica: expected all workers below one host or switch"));
  EXPECT_THAT(problem_with({{0, 1, 2, 3}, {4, 5, 6, 7, 7}}, topology), HasSubstr("rank 7 is in two replicas"));
  EXPECT_THAT(problem_with({{0, 1, 2, 3}}, topology), HasSubstr("replicas have 4 of 8 workers"));
}

TEST(ReplicasTest, TheTreeOfRegionsEndsAtThem) {
  const Topology topology = testing::three_levels(2, 3, 2, 4, 1, 1, 1);
  const std::vector<Region> of_hosts = find_regions(topology, Replicas(topology, places_at(topology, 0)));
  ASSERT_EQ(of_hosts.size(), 9U);  // all, two sites, six racks
  EXPECT_THAT(of_hosts[2].loose, ElementsAre(0, 1));
  EXPECT_THAT(of_hosts[1].members, ElementsAre(0, 1, 2, 3, 4, 5));
  const std::vector<Region> of_racks = find_regions(topology, Replicas(topology, places_at(topology, 1)));
  ASSERT_EQ(of_racks.size(), 3U);
  EXPECT_THAT(of_racks[0].children, ElementsAre(1, 2));
  EXPECT_THAT(of_racks[2].loose, ElementsAre(3, 4, 5));
  EXPECT_THAT(of_racks[2].children, IsEmpty());
  const std::vector<Region> of_all = find_regions(topology, Replicas(topology, places_at(topology, 3)));
  ASSERT_EQ(of_all.size(), 1U);
  EXPECT_EQ(of_all[0].parts(), 1);
}

// The usual tree, but for the meaning of its numbers, which is the same.
TEST(ReplicasTest, SingleWorkersLeaveTheTreeAsItIs) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Topology topology = testing::random_tree(seed, 40);
    const std::vector<Region> plain = find_regions(topology);
    const std::vector<Region> regions = find_regions(topology, Replicas(topology));
    ASSERT_EQ(regions.size(), plain.size()) << seed;
    for (std::size_t r = 0; r < plain.size(); ++r) {
      EXPECT_EQ(regions[r].children, plain[r].children);
      EXPECT_EQ(regions[r].loose, plain[r].loose);
      EXPECT_EQ(regions[r].members, plain[r].members);
      EXPECT_EQ(regions[r].parent, plain[r].parent);
    }
  }
}

}  // namespace
}  // namespace dssync
