#include "dssync/planner/stages.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "dssync/planner/cost.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/routes.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

Group everyone(const Topology& topology) {
  Group group(static_cast<std::size_t>(topology.workers()));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

// Carries out the stages on vectors of integers, as an engine would.
class Machine {
 public:
  // Every member starts with values of its own.
  Machine(const Group& group, std::size_t elements) : elements_(elements) {
    for (const Rank rank : group) {
      for (std::size_t i = 0; i < elements; ++i) {
        vectors_[rank].push_back(static_cast<long>(i) * 1000 + rank + 1);
        sum_.resize(elements, 0);
        sum_[i] += vectors_[rank][i];
      }
    }
  }

  // Those of one replica have the same values, weighed. The sum that they should end with is `divisor` times the mean
  // of all workers.
  Machine(const Group& group, std::size_t elements, const Replicas& replicas) : elements_(elements), sum_(elements, 0) {
    for (const Rank rank : group) {
      const auto [weight, divisor] = replicas.weighing_of(group, rank);
      for (std::size_t i = 0; i < elements; ++i) {
        const long value = static_cast<long>(i) * 1000 + replicas.number_of(rank) + 1;
        vectors_[rank].push_back(weight * value);
        sum_[i] += divisor * value;
      }
    }
    for (long& sum : sum_) sum /= static_cast<long>(group.size());
  }

  void run(const Lowering& lowering) {
    for (const std::vector<Stage>& phase : lowering.phases) {
      const std::map<Rank, std::vector<long>> before = vectors_;
      for (const Stage& stage : phase) {
        EXPECT_GE(stage.members.size(), 2U);
        stage.kind == Stage::Kind::kAllReduce ? all_reduce(stage, before) : exchange(stage, before);
      }
    }
  }

  bool has_sum_everywhere() const {
    return std::all_of(vectors_.begin(), vectors_.end(), [&](const auto& entry) { return entry.second == sum_; });
  }

 private:
  std::size_t element(double bound) const {
    return static_cast<std::size_t>(std::llround(bound * static_cast<double>(elements_)));
  }

  void all_reduce(const Stage& stage, const std::map<Rank, std::vector<long>>& before) {
    EXPECT_EQ(stage.bounds.size(), 2U);
    for (const Rank rank : stage.members) {
      reduce_to(rank, element(stage.bounds[0]), element(stage.bounds[1]), stage, before);
    }
  }

  void exchange(const Stage& stage, const std::map<Rank, std::vector<long>>& before) {
    EXPECT_EQ(stage.bounds.size(), stage.members.size() + 1);
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const std::size_t begin = element(stage.bounds[i]);
      const std::size_t end = element(stage.bounds[i + 1]);
      if (stage.kind == Stage::Kind::kReduceScatter) {
        reduce_to(stage.members[i], begin, end, stage, before);
        continue;
      }
      for (const Rank to : stage.members) {
        for (std::size_t at = begin; at < end; ++at) {
          vectors_[to][at] = before.at(stage.members[i])[at];
        }
      }
    }
  }

  void reduce_to(Rank to, std::size_t begin, std::size_t end, const Stage& stage,
                 const std::map<Rank, std::vector<long>>& before) {
    for (std::size_t at = begin; at < end; ++at) {
      vectors_[to][at] = 0;
      for (const Rank from : stage.members) {
        vectors_[to][at] += before.at(from)[at];
      }
    }
  }

  std::size_t elements_;
  std::map<Rank, std::vector<long>> vectors_;
  std::vector<long> sum_;
};

void expect_sum(const Group& group, const Topology& topology, const std::string& what) {
  const Codecs codecs({Codec::kFloat32, Codec::kInt8, Codec::kInt4});
  const Lowering ring = lower_to_ring(group, topology);
  const Lowering hierarchy = lower_hierarchically(group, topology);
  for (const std::size_t elements : {1U, 2U, 97U, 1000U}) {
    for (const Lowering& lowering :
         {ring, hierarchy, encoded(ring, topology, codecs), encoded(hierarchy, topology, codecs)}) {
      Machine machine(group, elements);
      machine.run(lowering);
      EXPECT_TRUE(machine.has_sum_everywhere()) << what << ", " << elements << " elements";
    }
  }
}

TEST(StagesTest, LeaveTheSumOnEveryMember) {
  expect_sum({0, 1, 2, 3, 4, 5, 6, 7}, testing::racks(2, 4, 1, 1), "two racks");
  expect_sum({0, 1, 5}, testing::racks(2, 4, 1, 1), "unequal parts of two racks");
  expect_sum({2}, testing::racks(2, 4, 1, 1), "one worker");
  const Topology levels = testing::three_levels(2, 3, 2, 4, 1, 1, 1);
  expect_sum(everyone(levels), levels, "three levels");
}

TEST(StagesTest, LeaveTheSumOnRandomGroupsOfRandomTrees) {
  std::mt19937 random(11);
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Topology topology = testing::random_tree(seed, 60);
    Group group;
    for (Rank rank = 0; rank < topology.workers(); ++rank) {
      if (seed % 3 == 0 || random() % 2 == 0) {
        group.push_back(rank);
      }
    }
    expect_sum(group, topology, "seed " + std::to_string(seed));
  }
}

// Any places that do not overlap.
std::vector<Group> random_places(const Topology& topology, std::mt19937& random) {
  std::vector<Group> places;
  for (int position = 0; position < topology.workers();) {
    NodeId place = topology.host_at(position);
    for (NodeId at = place; at != kNone && topology.node(at).first == position; at = topology.node(at).parent) {
      if (random() % 2 == 0) place = at;
    }
    const Node& node = topology.node(place);
    const int count = node.first == position && random() % 4 != 0 ? node.count : 1;
    Group& group = places.emplace_back();
    for (int i = 0; i < count; ++i) group.push_back(topology.rank_at(position++));
    std::sort(group.begin(), group.end());
  }
  return places;
}

TEST(StagesTest, LeaveTheMeanOfAllWorkersAcrossRandomReplicas) {
  std::mt19937 random(5);
  int larger = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Topology topology = testing::random_tree(seed, 60);
    const Replicas replicas(topology, random_places(topology, random));
    std::vector<int> numbers;
    for (int number = 0; number < replicas.count(); ++number) {
      if (seed % 3 == 0 || random() % 2 == 0) numbers.push_back(number);
    }
    const Group group = replicas.ranks_of(numbers);
    if (group.empty()) continue;
    larger += replicas.has_regions() && numbers.size() > 1 ? 1 : 0;
    const Lowering lowering = lower(group, topology, 1, replicas);
    for (const std::size_t elements : {1U, 2U, 97U, 1000U}) {
      Machine machine(group, elements, replicas);
      machine.run(lowering);
      EXPECT_TRUE(machine.has_sum_everywhere()) << "seed " << seed << ", " << elements << " elements";
    }
  }
  EXPECT_GT(larger, 100);
}

// Every flow on its own along its route, for the byte counts of load_of.
std::map<LinkId, double> count_flows(const Lowering& lowering, const Topology& topology) {
  std::map<LinkId, double> bytes;
  const auto send = [&](Rank from, Rank to, double amount) {
    for (const LinkId link :
         route(topology, topology.host_at(topology.position_of(from)), topology.host_at(topology.position_of(to)))) {
      bytes[link] += amount;
    }
  };
  for (const std::vector<Stage>& phase : lowering.phases) {
    for (const Stage& stage : phase) {
      const std::size_t k = stage.members.size();
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < k; ++j) {
          if (stage.kind == Stage::Kind::kAllReduce) {
            const double slice = stage.bounds[1] - stage.bounds[0];
            send(stage.members[i], stage.members[j], j == (i + 1) % k ? 2.0 * double(k - 1) / double(k) * slice : 0);
          } else if (i != j) {
            const std::size_t owner = stage.kind == Stage::Kind::kReduceScatter ? j : i;
            send(stage.members[i], stage.members[j], stage.bounds[owner + 1] - stage.bounds[owner]);
          }
        }
      }
    }
  }
  return bytes;
}

TEST(StagesTest, LoadsEqualTheSumOfAllFlows) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Topology topology = testing::random_tree(seed, 50);
    const Group group = everyone(topology);
    for (const Lowering& lowering : {lower_to_ring(group, topology), lower_hierarchically(group, topology)}) {
      std::map<LinkId, double> flows = count_flows(lowering, topology);
      for (const auto& [link, bytes] : load_of(lowering, topology, 1).bytes) {
        EXPECT_NEAR(bytes, flows[link], 1e-9) << "seed " << seed << ", " << topology.link(link).name;
        flows.erase(link);
      }
      for (const auto& [link, bytes] : flows) {
        EXPECT_NEAR(bytes, 0, 1e-9) << topology.link(link).name;
      }
    }
  }
}

double bytes_on(const std::string& name, const Lowering& lowering, const Topology& topology) {
  for (const auto& [link, bytes] : load_of(lowering, topology, 1).bytes) {
    if (topology.link(link).name == name) {
      return bytes;
    }
  }
  return 0;
}

// docs/planner.md: a NIC carries 1.75 of the vector either way; an uplink 1.75 with the ring, 1 hierarchically.
TEST(StagesTest, HierarchyRelievesTheUplink) {
  const Topology topology = testing::racks(2, 4, 1, 1);
  const Group group = everyone(topology);
  const Lowering ring = lower_to_ring(group, topology);
  const Lowering hierarchical = lower_hierarchically(group, topology);
  for (const std::string name : {"rack0-2 out", "rack0-2 in"}) {
    EXPECT_NEAR(bytes_on(name, ring, topology), 1.75, 1e-12);
    EXPECT_NEAR(bytes_on(name, hierarchical, topology), 1.75, 1e-12);
  }
  EXPECT_NEAR(bytes_on("rack1 up", ring, topology), 1.75, 1e-12);
  EXPECT_NEAR(bytes_on("rack1 up", hierarchical, topology), 1, 1e-12);
  EXPECT_EQ(hierarchical.phases.size(), 3U);
}

// A worker exchanges its quarter with the other rack, and gives it to three neighbours: 1/4 + 3/4 where it is 1.75
// when racks are not exact.
TEST(StagesTest, ExactRacksReduceOnlyAcross) {
  const Topology topology = testing::racks(2, 4, 1, 1);
  const Lowering lowering = lower_across(everyone(topology), topology, Replicas(topology, places_at(topology, 1)));
  ASSERT_EQ(lowering.phases.size(), 2U);
  EXPECT_EQ(lowering.phases[0].size(), 4U);
  EXPECT_EQ(lowering.phases[0].front().kind, Stage::Kind::kAllReduce);
  EXPECT_EQ(lowering.phases[1].front().kind, Stage::Kind::kAllGather);
  for (const std::string name : {"rack0 up", "rack1 down", "rack0-2 out", "rack1-0 in"}) {
    EXPECT_NEAR(bytes_on(name, lowering, topology), 1, 1e-12) << name;
  }
}

// Racks of two and of three hosts. Owners of 1/2 and of 1/3 exchange what they own, and give it to one and two others.
TEST(StagesTest, ExactRacksMayHaveDifferentSizes) {
  using testing::make_host;
  using testing::make_switch;
  const Topology topology =
      Topology::build({make_switch("core", "", 0), make_switch("a", "core", 1), make_switch("b", "core", 1)},
                      {make_host("a0", "a", 1), make_host("a1", "a", 1), make_host("b0", "b", 1),
                       make_host("b1", "b", 1), make_host("b2", "b", 1)},
                      "test");
  const Lowering lowering = lower_across(everyone(topology), topology, Replicas(topology, places_at(topology, 1)));
  EXPECT_EQ(lowering.phases[0].size(), 4U);  // slices from 0 to 1/3, 1/2, 2/3, 1
  for (const std::string name : {"a up", "b down", "a0 out", "a1 in", "b0 out", "b1 in"}) {
    EXPECT_NEAR(bytes_on(name, lowering, topology), 1, 1e-9) << name;
  }
}

// Two racks of two hosts with two workers. A host sends half of the vector to the other rack, and half to the other
// host; the rest stays inside.
TEST(StagesTest, ExactRacksGatherHostByHost) {
  const Topology topology = testing::racks(2, 2, 1, 1, 2);
  const Lowering lowering = lower_across(everyone(topology), topology, Replicas(topology, places_at(topology, 1)));
  EXPECT_EQ(lowering.phases.size(), 3U);
  for (const std::string name : {"rack0 up", "rack0-0 out", "rack1-1 in"}) {
    EXPECT_NEAR(bytes_on(name, lowering, topology), 1, 1e-12) << name;
  }
}

TEST(StagesTest, OneReplicaHasNothingToReduce) {
  const Topology topology = testing::racks(2, 2, 1, 1, 2);
  const Replicas replicas(topology, places_at(topology, 1));
  EXPECT_TRUE(lower({0, 1, 2, 3}, topology, 1, replicas).phases.empty());
}

// Each uplink carries 2 (q - 1) / q of the vector whatever the regions' sizes.
TEST(StagesTest, UplinkLoadDoesNotDependOnTheRegionsSizes) {
  const Topology topology = testing::racks(3, 5, 1, 1);
  const Lowering lowering = lower_hierarchically({0, 5, 6, 10, 11, 12, 13, 14}, topology);
  for (const std::string name : {"rack0 up", "rack1 down", "rack2 up"}) {
    EXPECT_NEAR(bytes_on(name, lowering, topology), 4.0 / 3, 1e-9);
  }
}

// A host with several workers sends what leaves it once, and what stays inside costs no link.
TEST(StagesTest, WorkersOfAHostShareItsNic) {
  const Topology topology = testing::racks(1, 2, 1, 1, 8);
  const Lowering lowering = lower_hierarchically(everyone(topology), topology);
  EXPECT_NEAR(bytes_on("rack0-0 out", lowering, topology), 1, 1e-12);
  EXPECT_TRUE(load_of(lower({0, 1, 2, 3}, topology, 1), topology, 1).bytes.empty());
}

// The slow NIC owns nothing: it sends its vector once and receives the average once.
TEST(StagesTest, SlowNicOwnsNoSlice) {
  const Topology topology = testing::hosts_with_nics({10, 10, 10, 1, 10, 10, 10, 10});
  const Lowering lowering = lower(everyone(topology), topology, 1);
  EXPECT_NEAR(bytes_on("h3 out", lowering, topology), 1, 1e-12);
  EXPECT_NEAR(bytes_on("h3 in", lowering, topology), 1, 1e-12);
  EXPECT_NEAR(bytes_on("h0 out", lowering, topology), 1 + 6.0 / 7, 1e-9);
  expect_sum(everyone(topology), topology, "slow NIC");
}

TEST(StagesTest, StagesTravelInTheCodecOfTheirLevel) {
  const Topology topology = testing::racks(3, 2, 1, 1, 2);
  const Codecs codecs({Codec::kFloat32, Codec::kInt8, Codec::kInt4});
  const Lowering lowering = encoded(lower_hierarchically(everyone(topology), topology), topology, codecs);
  // Inside hosts, inside racks, between racks, and back.
  ASSERT_EQ(lowering.phases.size(), 6U);
  const std::vector<Codec> expected = {Codec::kFloat32, Codec::kInt8, Codec::kInt4,
                                       Codec::kInt4,    Codec::kInt8, Codec::kFloat32};
  for (std::size_t phase = 0; phase < expected.size(); ++phase) {
    for (const Stage& stage : lowering.phases[phase]) EXPECT_EQ(stage.codec, expected[phase]) << phase;
  }
}

TEST(StagesTest, NoRingOfThreeOrMoreIsEncoded) {
  const Topology topology = testing::flat(5);
  const Codecs codecs(Codec::kInt4);
  const Lowering five = lower(everyone(topology), topology, 1, codecs);
  ASSERT_EQ(five.phases.size(), 2U);
  EXPECT_EQ(five.phases[0].front().kind, Stage::Kind::kReduceScatter);
  EXPECT_EQ(five.phases[1].front().kind, Stage::Kind::kAllGather);
  EXPECT_EQ(five.phases[0].front().bounds, five.phases[1].front().bounds);
  EXPECT_NEAR(bytes_on("h0 out", five, topology), 1.6 * wire_share(Codec::kInt4), 1e-12);
  const Lowering two = lower({1, 3}, topology, 1, codecs);
  ASSERT_EQ(two.phases.size(), 1U);
  EXPECT_EQ(two.phases[0].front().kind, Stage::Kind::kAllReduce);
  EXPECT_NEAR(bytes_on("h1 out", two, topology), wire_share(Codec::kInt4), 1e-12);
}

TEST(StagesTest, LoweringPicksTheCheaperWay) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Topology topology = testing::random_tree(seed, 80);
    const Group group = everyone(topology);
    for (const double bytes : {1e-3, 1.0, 1e3}) {
      const double chosen = load_of(lower(group, topology, bytes), topology, bytes).duration(topology).count();
      EXPECT_LE(chosen, std::min(ring_seconds(topology, bytes), hierarchical_seconds(topology, bytes)) * (1 + 1e-8));
    }
  }
}

TEST(StagesTest, SeveralPhasesHaveAPipelineToFill) {
  const Topology topology = testing::racks(2, 4, 200, 50);
  const Group everyone = {0, 1, 2, 3, 4, 5, 6, 7};
  // Of 800 bytes 600 leave a NIC in the rack, 800 cross the uplink, and 600 come back: 3 + 16 + 3 seconds.
  const Cost cost = cost_of(lower_hierarchically(everyone, topology), topology, 800);
  EXPECT_NEAR(cost.seconds_per_iteration, 16, 1e-9);
  EXPECT_NEAR(cost.pipeline_seconds, (3.0 + 3) * 2 / 12, 1e-9);
  EXPECT_EQ(cost_of(lower_to_ring(everyone, topology), topology, 800).pipeline_seconds, 0);
  // Half of the averages cross, so an iteration takes half as long, and so does a piece.
  const Schedule schedule = {{"all", {everyone}}, {"nobody", {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}}};
  EXPECT_NEAR(cost_of(schedule, 2, topology, 800).pipeline_seconds, 0.5, 1e-9);
}

TEST(StagesTest, LatencyOfTheRingAndOfTheExchange) {
  std::vector<Topology::SwitchSpec> switches = {testing::make_switch("core", "", 0)};
  std::vector<Topology::HostSpec> hosts;
  for (int r = 0; r < 2; ++r) {
    const std::string rack = "r" + std::to_string(r);
    switches.push_back(testing::make_switch(rack, "core", 1));
    switches.back().latency = Seconds(10);
    for (int i = 0; i < 2; ++i) {
      hosts.push_back(testing::make_host("h" + std::to_string(2 * r + i), rack, 1));
      hosts.back().latency = Seconds(1);
    }
  }
  const Topology topology = Topology::build(switches, hosts, "test");
  // The longest hop crosses the core: 1 + 10 + 10 + 1. A ring of four takes six of them.
  EXPECT_DOUBLE_EQ(load_of(lower_to_ring({0, 1, 2, 3}, topology), topology, 1).latency.count(), 6 * 22);
  // Scatter and gather inside (1 + 1 each), and two steps across.
  EXPECT_DOUBLE_EQ(load_of(lower_hierarchically({0, 1, 2, 3}, topology), topology, 1).latency.count(), 2 + 2 * 22 + 2);
}

}  // namespace
}  // namespace dssync
