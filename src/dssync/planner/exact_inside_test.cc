#include "dssync/planner/exact_inside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/planner/dense.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Group> chosen(const Topology& topology, const std::string& name, double backward = 0) {
  return choose_replicas(topology, {.bytes = 1,
                                    .disagreement = 0.5,
                                    .exact_inside = exact_inside_from_name(name),
                                    .backward = Seconds(backward)});
}

TEST(ExactInsideTest, NamesLeadBack) {
  for (const char* name : {"none", "auto", "host", "rack", "site", "3"}) {
    EXPECT_EQ(name_of(exact_inside_from_name(name)), name);
  }
  EXPECT_EQ(name_of(exact_inside_from_name("1")), "rack");
  for (const char* name : {"", "racks", "-1", "1.5", "65"}) EXPECT_THROW(exact_inside_from_name(name), InputError);
}

TEST(ExactInsideTest, ALevelGivesItsPlaces) {
  const Topology topology = testing::racks(2, 2, 1, 1, 2);
  EXPECT_THAT(chosen(topology, "none"), IsEmpty());
  EXPECT_THAT(chosen(topology, "host"), ElementsAre(Group{0, 1}, Group{2, 3}, Group{4, 5}, Group{6, 7}));
  EXPECT_THAT(chosen(topology, "rack"), ElementsAre(Group{0, 1, 2, 3}, Group{4, 5, 6, 7}));
  EXPECT_THAT(chosen(testing::flat(4), "host"), IsEmpty());  // one worker each
}

// NICs of 4 bytes a second, uplinks of 1.6. To average one byte inside a rack takes 1.5 / 4 s.
TEST(ExactInsideTest, AutoTakesRacksWhereTheBackwardPassHidesThem) {
  const Topology topology = testing::racks(2, 4, 4, 1.6);
  EXPECT_THAT(chosen(topology, "auto"), IsEmpty());
  EXPECT_THAT(chosen(topology, "auto", 0.38), ElementsAre(Group{0, 1, 2, 3}, Group{4, 5, 6, 7}));
  EXPECT_THAT(chosen(topology, "auto", 10), ElementsAre(Group{0, 1, 2, 3, 4, 5, 6, 7}));
}

// With uplinks of 1, exact racks, which meet in every third iteration, load them more than eight replicas do.
TEST(ExactInsideTest, AutoLeavesRacksThatWouldCrossMoreOften) {
  EXPECT_THAT(chosen(testing::racks(2, 4, 4, 1), "auto", 0.4), IsEmpty());
}

TEST(ExactInsideTest, AutoAlwaysTakesTheWorkersOfAHost) {
  EXPECT_THAT(chosen(testing::racks(2, 2, 4, 1, 2), "auto"),
              ElementsAre(Group{0, 1}, Group{2, 3}, Group{4, 5}, Group{6, 7}));
}

// Both racks meet in every third iteration: what differs between them has a mean age of 1, one of two components.
TEST(ExactInsidePlanTest, ExactRacksCrossSeldom) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  const Plan plan = Planner(topology, 1, 0, places_at(topology, 1)).require(0.5);
  EXPECT_EQ(plan.rounds.size(), 3U);
  EXPECT_NEAR(plan.mixing.steady_disagreement, 0.5, 1e-9);
  EXPECT_NEAR(plan.cost.seconds_per_iteration, 1.0 / 3, 1e-9);  // of the uplinks: each carries the vector once
  EXPECT_NEAR(plan.inside.seconds_per_iteration, 1.5 / 4, 1e-9);
  EXPECT_EQ(plan.replica_count(), 2);
  EXPECT_NEAR(visible_seconds(plan, Seconds(0.25)) - plan.cost.pipeline_seconds, 0.125 + 1.0 / 3, 1e-9);
}

// Four racks in shuffled pairs: two components with a mean age of 1/2, of four.
TEST(ExactInsidePlanTest, AGroupLimitCountsReplicas) {
  const Topology topology = testing::racks(4, 4, 1, 1);
  Planner planner(topology, 1, 2, places_at(topology, 1));
  EXPECT_NEAR(planner.smallest_disagreement(), 1.0 / 4, 1e-9);
  for (const Round& round : planner.published().rounds) {
    for (const Group& group : round.groups) EXPECT_EQ(group.size(), 8U);
  }
}

TEST(ExactInsidePlanTest, OneReplicaHasNothingToAgreeOn) {
  const Topology topology = testing::racks(2, 2, 1, 1);
  const Plan plan = Planner(topology, 1, 0, places_at(topology, 2)).require(0);
  EXPECT_EQ(plan.mixing.steady_disagreement, 0);
  EXPECT_EQ(plan.cost.seconds_per_iteration, 0);
  EXPECT_GT(plan.inside.seconds_per_iteration, 0);
}

TEST(ExactInsidePlanTest, WithoutRegionsNothingIsInside) {
  const Plan plan = Planner(testing::racks(2, 2, 1, 1), 1).require(0.5);
  EXPECT_THAT(plan.replicas, IsEmpty());
  EXPECT_EQ(plan.replica_count(), 4);
  EXPECT_EQ(plan.inside.seconds_per_iteration, 0);
}

bool is_union_of(const std::vector<Group>& replicas, const Group& group) {
  std::size_t workers = 0;
  for (const Group& replica : replicas) {
    if (std::includes(group.begin(), group.end(), replica.begin(), replica.end())) workers += replica.size();
  }
  return workers == group.size();
}

// Of any tree and level: groups are unions of replicas, S is what dense matrices say and within the limit, and costs
// are those of the schedule's own stages.
TEST(ExactInsidePlanTest, PlansOfRandomTreesKeepTheirPromises) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Topology topology = testing::random_tree(seed, 30);
    for (int level = 0; level <= top_level(topology); ++level) {
      const std::vector<Group> replicas = places_at(topology, level);
      for (const int group_limit : {0, 2}) {
        Planner planner(topology, 1, group_limit, replicas);
        const double limit = std::max(0.2, planner.smallest_disagreement());
        const Plan plan = planner.require(limit);
        for (const Round& round : plan.rounds) {
          for (const Group& group : round.groups) EXPECT_TRUE(is_union_of(replicas, group)) << "seed " << seed;
        }
        const double of_workers = testing::dense_mixing(plan.rounds, topology.workers()).steady_disagreement;
        const double dense = of_workers * topology.workers() / static_cast<double>(replicas.size());
        EXPECT_NEAR(plan.mixing.steady_disagreement, dense, 1e-6 * (1 + dense)) << "seed " << seed;
        EXPECT_LE(dense, limit + 1e-6);
        EXPECT_DOUBLE_EQ(plan.cost.seconds_per_iteration,
                         cost_of(plan.rounds, plan.shards, topology, 1, replicas).seconds_per_iteration);
      }
    }
  }
}

}  // namespace
}  // namespace dssync
