#include "dssync/planner/planner.h"

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/planner/dense.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/stage_table.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::flat;
using ::testing::HasSubstr;
using testing::hosts_with_nics;
using testing::make_host;
using testing::make_switch;
using testing::racks;
using testing::random_tree;

int largest_group(const Plan& plan) {
  std::size_t largest = 0;
  for (const Round& round : plan.rounds) {
    for (const Group& group : round.groups) {
      largest = std::max(largest, group.size());
    }
  }
  return static_cast<int>(largest);
}

// What must hold of any plan.
void expect_sound(const Plan& plan, const Topology& topology, double limit, int group_limit, const std::string& what) {
  EXPECT_NO_THROW(check_schedule(plan.rounds, topology.workers())) << what;
  EXPECT_LT(plan.mixing.cycle_norm, 1) << what;
  EXPECT_LE(plan.mixing.steady_disagreement, limit + 1e-9) << what;
  EXPECT_LE(plan.rounds.size(), 64U) << what;
  if (group_limit > 0) {
    EXPECT_LE(largest_group(plan), group_limit) << what;
  }
}

void expect_dense(const Plan& plan, const Topology& topology, const std::string& what) {
  const Mixing dense = testing::dense_mixing(plan.rounds, topology.workers());
  EXPECT_NEAR(plan.mixing.cycle_norm, dense.cycle_norm, 1e-6) << what;
  EXPECT_NEAR(plan.mixing.steady_disagreement, dense.steady_disagreement, 1e-7) << what;
}

double better_baseline(const Topology& topology, double bytes) {
  return std::min(ring_seconds(topology, bytes), hierarchical_seconds(topology, bytes));
}

// The fastest cycles of up to eight rounds of nobody, pairs in a rack, whole racks and all, for two racks of four,
// found by trying them all; in units of bytes / NIC rate. Rows: limit on S; columns: core as fast as the NIC, half, a
// quarter, an eighth.
TEST(PlannerTest, ReachesTheKnownOptimaOfTwoRacks) {
  const double optimum[3][4] = {{1.375, 1.375, 1.5625, 2.0}, {0.875, 1.0, 1.05, 1.3214}, {0.5834, 0.65, 0.6786, 1.0}};
  const double limits[] = {0.2, 0.5, 1.0};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      const Topology topology = racks(2, 4, 1, 1.0 / (1 << column));
      const std::string what = "S <= " + std::to_string(limits[row]) + ", core 1/" + std::to_string(1 << column);
      const std::optional<Plan> plan = Planner(topology, 1).best(limits[row]);
      ASSERT_TRUE(plan) << what;
      expect_sound(*plan, topology, limits[row], 0, what);
      expect_dense(*plan, topology, what);
      EXPECT_LE(plan->cost.seconds_per_iteration, 1.01 * optimum[row][column]) << what;
    }
  }
}

TEST(PlannerTest, BaselinesOfTwoRacks) {
  const double ring[] = {1.75, 3.5, 7, 14};
  const double hierarchical[] = {1.75, 2, 4, 8};
  for (int column = 0; column < 4; ++column) {
    const Topology topology = racks(2, 4, 1, 1.0 / (1 << column));
    EXPECT_NEAR(ring_seconds(topology, 1), ring[column], 1e-9);
    EXPECT_NEAR(hierarchical_seconds(topology, 1), hierarchical[column], 1e-9);
  }
}

TEST(PlannerTest, CrossesASlowUplinkSeldom) {
  const Topology topology = racks(2, 4, 1, 1.0 / 8);
  const std::optional<Plan> plan = Planner(topology, 1).best(0.5);
  ASSERT_TRUE(plan);
  std::size_t crossings = 0;
  for (const Round& round : plan->rounds) {
    crossings += round.groups.size() == 1 ? 1U : 0U;
  }
  EXPECT_GE(crossings, 1U);
  EXPECT_LE(crossings * 6, plan->rounds.size());
}

// One NIC is ten times slower. The others average often; it joins rarely.
TEST(PlannerTest, LetsASlowNicJoinRarely) {
  const Topology topology = hosts_with_nics({1, 1, 1, 1, 1, 0.1, 1, 1});
  const std::optional<Plan> plan = Planner(topology, 1).best(0.5);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.5, 0, "slow NIC");
  EXPECT_LE(plan->cost.seconds_per_iteration * 4, better_baseline(topology, 1));
}

// With cores as fast as a NIC or half as fast, all three crossings of eight rounds lie close together (a..a.a.a) so
// that rack averages fill the long gap: found by trying all cycles of eight.
TEST(PlannerTest, FindsUnevenGaps) {
  for (const double core : {1.0, 0.5}) {
    const Topology topology = racks(2, 4, 1, core);
    EXPECT_LE(Planner(topology, 1).best(0.5)->cost.seconds_per_iteration, 0.84375 * 1.001);
  }
}

// The disagreement between two sites is one degree of freedom of 32, so S allows to cross every 32nd iteration.
TEST(PlannerTest, LargeSitesMeetRarely) {
  const Topology topology = racks(2, 16, 1, 0.01);
  const std::optional<Plan> plan = Planner(topology, 1).best(0.5);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.5, 0, "two sites");
  EXPECT_LE(plan->cost.seconds_per_iteration, 100.0 / 32 + 0.01);
}

// Eight NICs, each half as fast as the one before. A hand-made cycle of six rounds in which the fastest k average, with
// the whole once, takes 21.5 at S = 0.5.
TEST(PlannerTest, EverySpeedHasItsRhythm) {
  const Topology topology = hosts_with_nics({1, 1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128});
  const std::optional<Plan> plan = Planner(topology, 1).best(0.5);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.5, 0, "ladder of NICs");
  EXPECT_LE(plan->cost.seconds_per_iteration, 21.5);
}

// Switches in a chain, two hosts on each, the cables between them unequal: slices must not multiply from switch to
// switch.
TEST(PlannerTest, ChainsOfSwitchesStaySmall) {
  std::vector<Topology::SwitchSpec> switches;
  std::vector<Topology::HostSpec> hosts;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "s" + std::to_string(i);
    switches.push_back(make_switch(name, i == 0 ? "" : "s" + std::to_string(i - 1), 1.0 + i % 7));
    for (int h = 0; h < 2; ++h) hosts.push_back(make_host(name + "-" + std::to_string(h), name, 1));
  }
  const Topology topology = Topology::build(switches, hosts, "test");
  Group everyone;
  for (Rank rank = 0; rank < topology.workers(); ++rank) {
    everyone.push_back(rank);
  }
  for (const std::vector<Stage>& phase : lower_hierarchically(everyone, topology).phases) {
    EXPECT_LE(phase.size(), 4U * everyone.size());
  }
  const std::optional<Plan> plan = Planner(topology, 1).best(0.5);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.5, 0, "chain");
}

TEST(PlannerTest, ZeroDisagreementIsAnExactAverageEveryTime) {
  const Topology topology = racks(2, 4, 1, 0.25);
  const std::optional<Plan> plan = Planner(topology, 1).best(0);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rounds.size(), 1U);
  EXPECT_EQ(plan->rounds[0].groups.size(), 1U);
  EXPECT_NEAR(plan->cost.seconds_per_iteration, 4, 1e-9);
}

TEST(PlannerTest, SingleWorkerHasNothingToDo) {
  const Topology topology = flat(1);
  for (const int limit : {0, 2}) {
    Planner planner(topology, 1, limit);
    const std::optional<Plan> plan = planner.best(0);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->cost.seconds_per_iteration, 0);
    EXPECT_EQ(plan->mixing.steady_disagreement, 0);
    EXPECT_EQ(planner.published().rounds.size(), 1U);
  }
}

// Waiting out a latency in every iteration is worse than averaging one round at a time.
TEST(PlannerTest, TakesOneShardWhereLatencyRules) {
  std::vector<Topology::SwitchSpec> switches = {make_switch("wan", "", 0)};
  std::vector<Topology::HostSpec> hosts;
  for (const char* site : {"site1", "site2"}) {
    switches.push_back(make_switch(site, "wan", 1e9));
    switches.back().latency = Seconds(0.1);
    for (int i = 0; i < 4; ++i) hosts.push_back(make_host(std::string(site) + "-" + std::to_string(i), site, 1e9));
  }
  const Topology topology = Topology::build(switches, hosts, "test");
  const std::optional<Plan> plan = Planner(topology, 1e6).best(0.5);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->shards, 1);
  // Crossing takes two steps of 0.2 s at best, and two racks of four may cross every eighth iteration.
  EXPECT_LT(plan->cost.seconds_per_iteration, 0.4 / 7 + 0.01);
  expect_sound(*plan, topology, 0.5, 0, "two sites");
}

// Every number of workers and every group limit on a flat network, at several limits.
TEST(PlannerTest, FlatNetworksUnderGroupLimits) {
  for (int workers = 1; workers <= 64; ++workers) {
    const Topology topology = flat(workers);
    for (int group = 2; group <= 8; ++group) {
      const std::string what = std::to_string(workers) + " workers, groups of " + std::to_string(group);
      Planner planner(topology, 1, group);
      const double smallest = planner.smallest_disagreement();
      for (const double limit : {0.1, 0.5, 2.0, smallest}) {
        const std::optional<Plan> plan = planner.best(limit);
        EXPECT_EQ(plan.has_value(), limit >= smallest) << what << ", S <= " << limit << ", smallest " << smallest;
        if (plan) {
          expect_sound(*plan, topology, limit, group, what);
          if (workers % 9 == 4) {
            expect_dense(*plan, topology, what);
          }
        }
      }
    }
  }
}

TEST(PlannerTest, PublishedScheduleOfFlatNetworks) {
  for (int workers = 1; workers <= 64; ++workers) {
    const Topology topology = flat(workers);
    for (int group = 2; group <= 8; ++group) {
      const std::string what = std::to_string(workers) + " workers, groups of " + std::to_string(group);
      const Plan plan = Planner(topology, 1, group).published();
      expect_sound(plan, topology, std::numeric_limits<double>::infinity(), group, what);
      EXPECT_EQ(plan.shards, 1);
      const bool smooth = workers == 1 || !grid_digits(workers, group).empty();
      EXPECT_EQ(plan.mixing.exact(), smooth) << what;
      if (smooth) {
        EXPECT_EQ(plan.mixing.cycle_norm, 0) << what;
      }
    }
  }
}

TEST(PlannerTest, SmallestDisagreementOfAHypercube) {
  EXPECT_DOUBLE_EQ(Planner(flat(8), 1, 2).smallest_disagreement(), 0.5);
  EXPECT_DOUBLE_EQ(Planner(flat(16), 1, 4).smallest_disagreement(), 3.0 / 16);
  EXPECT_DOUBLE_EQ(Planner(flat(6), 1, 8).smallest_disagreement(), 0);
}

// Six workers in pairs: {01}{23}{45} and {02}{14}{35} in turn have 4/9.
TEST(PlannerTest, SmallestDisagreementOfSixInPairs) {
  EXPECT_NEAR(Planner(flat(6), 1, 2).smallest_disagreement(), 4.0 / 9, 1e-9);
}

// Two racks of four, the core an eighth of a NIC, groups of four: five rack averages, then half of each rack with half
// of the other.
TEST(PlannerTest, HalvesOfRacksCrossUnderAGroupLimit) {
  const Topology topology = racks(2, 4, 1, 1.0 / 8);
  const std::optional<Plan> plan = Planner(topology, 1, 4).best(0.35);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.35, 4, "halves");
  EXPECT_LE(plan->cost.seconds_per_iteration, 16.0 / 6 * 1.001);
}

// With hardly any bytes, latency is all that counts, and a looser limit must not cost more of it.
TEST(PlannerTest, LatencyCountsUnderAGroupLimit) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Topology topology = random_tree(seed, 40);
    Planner planner(topology, 1e-9, 5);
    double last = std::numeric_limits<double>::infinity();
    for (const double limit : {0.5, 1.0, 4.0, 16.0}) {
      if (const std::optional<Plan> plan = planner.best(limit)) {
        EXPECT_LE(plan->cost.seconds_per_iteration, last * 1.001) << "seed " << seed << ", S <= " << limit;
        last = plan->cost.seconds_per_iteration;
      }
    }
  }
}

// Random trees in batches of seeds, so that they run side by side.
class RandomTreesTest : public ::testing::TestWithParam<unsigned> {};
constexpr unsigned kBatches = 10;
INSTANTIATE_TEST_SUITE_P(Batch, RandomTreesTest, ::testing::Range(0U, kBatches));

TEST_P(RandomTreesTest, WithoutGroupLimit) {
  for (unsigned seed = GetParam(); seed < 300; seed += kBatches) {
    const Topology topology = random_tree(seed, 256);
    const std::string what = "seed " + std::to_string(seed);
    const double bytes = seed % 2 == 0 ? 1 : 0.05;
    Planner planner(topology, bytes);
    double last = std::numeric_limits<double>::infinity();
    for (const double limit : {0.0, 0.1, 0.5, 2.0}) {
      const std::optional<Plan> plan = planner.best(limit);
      ASSERT_TRUE(plan) << what;
      expect_sound(*plan, topology, limit, 0, what);
      EXPECT_LE(plan->cost.seconds_per_iteration, better_baseline(topology, bytes) * (1 + 1e-9)) << what;
      // A looser limit never costs more, but for the half percent that a longer cycle has to win.
      EXPECT_LE(plan->cost.seconds_per_iteration, last * 1.006) << what << ", S <= " << limit;
      last = plan->cost.seconds_per_iteration;
      if (topology.workers() <= 64 && seed % 4 == 0) {
        expect_dense(*plan, topology, what);
      }
    }
  }
}

TEST_P(RandomTreesTest, UnderGroupLimits) {
  for (unsigned seed = GetParam(); seed < 60; seed += kBatches) {
    const Topology topology = random_tree(seed, 256);
    const int group = 2 + static_cast<int>(seed % 7);
    const std::string what = "seed " + std::to_string(seed);
    Planner planner(topology, 1, group);
    const double smallest = planner.smallest_disagreement();
    for (const double limit : {0.5, smallest}) {
      const std::optional<Plan> plan = Planner(topology, 1, group).best(limit);  // as another process would ask
      EXPECT_EQ(plan.has_value(), limit >= smallest) << what;
      if (plan) {
        expect_sound(*plan, topology, limit, group, what);
      }
    }
    expect_sound(planner.published(), topology, std::numeric_limits<double>::infinity(), group, what);
  }
}

TEST(PlannerTest, SameInputSamePlan) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Topology topology = random_tree(seed, 100);
    Planner warm(topology, 1);
    warm.best(2);  // what it remembers must not change the next answer
    const std::optional<Plan> a = warm.best(0.5);
    const std::optional<Plan> b = Planner(topology, 1).best(0.5);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->rounds, b->rounds);
    EXPECT_EQ(a->shards, b->shards);
    EXPECT_EQ(a->cost.seconds_per_iteration, b->cost.seconds_per_iteration);
  }
}

TEST(PlannerTest, LimitsAreMetOnANetworkTooLargeForMatrices) {
  const Topology topology = testing::three_levels(2, 8, 8, 8, 1, 2, 4);
  Planner planner(topology, 1);
  const std::optional<Plan> plan = planner.best(0.5);
  ASSERT_TRUE(plan);
  expect_sound(*plan, topology, 0.5, 0, "1024 workers");
  EXPECT_LE(plan->cost.seconds_per_iteration * 3, better_baseline(topology, 1));
}

std::string refusal(double bytes, double disagreement, int group_limit) {
  try {
    const Topology topology = flat(4);
    Planner(topology, bytes, group_limit).best(disagreement);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(PlannerTest, RefusesNonsense) {
  EXPECT_THAT(refusal(0, 0.5, 0), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal(-1, 0.5, 0), HasSubstr("-1 bytes"));
  EXPECT_THAT(refusal(1, -0.5, 0), HasSubstr("disagreement of -0.5"));
  EXPECT_THAT(refusal(1, std::nan(""), 0), HasSubstr("disagreement of nan"));
  EXPECT_THAT(refusal(1, 0.5, 1), HasSubstr("groups of at most 1"));
  EXPECT_THAT(refusal(1, 0.5, -3), HasSubstr("groups of at most -3"));
  EXPECT_EQ(refusal(1, std::numeric_limits<double>::infinity(), 0), "");
}

constexpr CodecChoice kAuto{std::nullopt};

double codec_share_of_limit(const Plan& plan) { return plan.codec_disagreement / plan.disagreement(); }

TEST(PlannerCodecTest, FewBitsAreTakenWhereLinksAreSlow) {
  const Topology topology = racks(2, 4, 25e6, 6.25e6);
  const Plan plain = Planner(topology, 8e6).require(0.5);
  const Plan plan = Planner(topology, 8e6, 0, {}, kAuto).require(0.5);
  EXPECT_LE(plan.disagreement(), 0.5 + 1e-9);
  EXPECT_GT(plan.codec_disagreement, 0);
  EXPECT_LT(codec_share_of_limit(plan), 0.2);
  EXPECT_EQ(plan.codecs, Codecs({Codec::kFloat32, Codec::kInt4}));
  // An eighth of the bytes, and a little for tighter averages.
  EXPECT_LT(plan.cost.seconds_per_iteration, plain.cost.seconds_per_iteration / 6.5);
  // What others compute from the plan is what the plan says.
  EXPECT_DOUBLE_EQ(cost_of(plan.rounds, plan.shards, topology, 8e6, plan.replicas, plan.codecs).seconds_per_iteration,
                   plan.cost.seconds_per_iteration);
  EXPECT_NEAR(
      StageTable(plan.rounds, plan.shards, topology, 8e6, plan.replicas, plan.codecs).seconds_per_iteration(topology),
      plan.cost.seconds_per_iteration, 1e-9 * plan.cost.seconds_per_iteration);
}

TEST(PlannerCodecTest, FastLinksAreFasterThanCoding) {
  const Plan plan = Planner(flat(8, 1.25e10), 8e6, 0, {}, kAuto).require(0.5);
  EXPECT_TRUE(plan.codecs.is_float32());
  EXPECT_EQ(plan.codec_disagreement, 0);
}

TEST(PlannerCodecTest, OnlyTheSlowLevelIsEncoded) {
  const Topology topology = testing::three_levels(2, 2, 4, 1, 1.25e10, 1.25e10, 1.25e8);
  const Plan plan = Planner(topology, 8e6, 0, {}, kAuto).require(0.5);
  EXPECT_EQ(plan.codecs.at(1), Codec::kFloat32);
  EXPECT_NE(plan.codecs.at(3), Codec::kFloat32);
  EXPECT_LT(plan.cost.seconds_per_iteration, Planner(topology, 8e6).require(0.5).cost.seconds_per_iteration / 2);
}

TEST(PlannerCodecTest, ASlowCpuMeansMoreBits) {
  const Topology topology = flat(8, 25e6);
  const Plan fast = Planner(topology, 8e6, 0, {}, {std::nullopt, 1e9}).require(0.5);
  const Plan slow = Planner(topology, 8e6, 0, {}, {std::nullopt, 1e7}).require(0.5);
  EXPECT_EQ(fast.codecs.at(1), Codec::kInt4);
  EXPECT_EQ(slow.codecs.at(1), Codec::kFloat32);
}

TEST(PlannerCodecTest, AnExactAverageStaysExact) {
  EXPECT_TRUE(Planner(flat(8, 1e6), 8e6, 0, {}, kAuto).require(0).codecs.is_float32());
}

TEST(PlannerCodecTest, CodecsThatAreAskedForAreEverywhere) {
  const Topology topology = racks(2, 4, 25e6, 6.25e6, 2);
  for (const Codec codec : {Codec::kBfloat16, Codec::kInt8, Codec::kInt4}) {
    const Plan plan = Planner(topology, 8e6, 0, {}, {codec}).require(0.3);
    EXPECT_EQ(plan.codecs, Codecs(codec));
    EXPECT_LE(plan.disagreement(), 0.3 + 1e-9) << name_of(codec);
    EXPECT_GT(plan.codec_disagreement, 0) << name_of(codec);
  }
}

TEST(PlannerCodecTest, WithoutARoundOfEveryoneThereIsNoReference) {
  const Topology topology = flat(8, 25e6);
  const Plan plan = Planner(topology, 8e6, 2, {}, kAuto).require(1);
  EXPECT_EQ(plan.codecs.at(1), Codec::kBfloat16);
  EXPECT_LE(plan.disagreement(), 1 + 1e-9);
  try {
    Planner(topology, 8e6, 2, {}, {Codec::kInt4});
    FAIL() << "expected an InputError";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no round in which everyone does"));
  }
  EXPECT_THROW(Planner(topology, 8e6, 0, {}, {Codec::kInt8}).published(), InputError);
}

TEST(PlannerCodecTest, AScheduleIsFollowedInTheFastestCodecs) {
  const Topology topology = flat(4, 25e6);
  const Schedule local = {{"nobody", {{0}, {1}, {2}, {3}}}, {"all", {{0, 1, 2, 3}}}};
  const Plan plan = Planner(topology, 8e6, 0, {}, kAuto).follow(local, 1);
  EXPECT_EQ(plan.rounds, local);
  EXPECT_EQ(plan.codecs.at(1), Codec::kInt4);
  EXPECT_EQ(plan.codec_disagreement, 0) << "all have the same error";
  EXPECT_TRUE(Planner(topology, 8e6).follow(local, 1).codecs.is_float32());
}

TEST(PlannerCodecTest, TheLimitHoldsOnRandomTrees) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Topology topology = random_tree(seed, 40);
    for (const double limit : {0.1, 0.5, 2.0}) {
      Planner planner(topology, 1, 0, {}, {std::nullopt, 1e3});
      const Plan plan = planner.require(limit);
      expect_sound(plan, topology, limit, 0, "seed " + std::to_string(seed));
      EXPECT_LE(plan.disagreement(), limit + 1e-9) << seed;
      EXPECT_LE(plan.cost.seconds_per_iteration, Planner(topology, 1).require(limit).cost.seconds_per_iteration)
          << seed;
      planner.best(limit / 3);
      EXPECT_EQ(planner.require(limit).rounds, plan.rounds) << "what was asked before does not matter, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace dssync
