// Messages of stages, and what they put on links.
#include "dssync/planner/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/index.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using Kind = Stage::Kind;
using Elements = std::vector<std::int64_t>;

constexpr std::array kKinds = {Kind::kReduceScatter, Kind::kAllReduce, Kind::kAllGather};

TEST(TrafficTest, MembersOfAReduceScatterSendWhatOthersShallOwn) {
  const std::vector<double> bounds = {0, 0.5, 0.75, 1};
  EXPECT_EQ(message_bytes(Kind::kReduceScatter, 3, bounds, 0, 1, 1.0), 0.25);
  EXPECT_EQ(message_bytes(Kind::kReduceScatter, 3, bounds, 2, 0, 1.0), 0.5);
  EXPECT_EQ(message_bytes(Kind::kReduceScatter, 3, bounds, 1, 1, 1.0), 0);
  EXPECT_EQ(sent_bytes(Kind::kReduceScatter, 3, bounds, 0, 1.0), 0.5);
  EXPECT_EQ(sent_bytes(Kind::kReduceScatter, 3, bounds, 2, 8.0), 6);
}

TEST(TrafficTest, MembersOfAnAllGatherSendWhatTheyOwn) {
  const std::vector<double> bounds = {0, 0.5, 0.75, 1};
  EXPECT_EQ(message_bytes(Kind::kAllGather, 3, bounds, 0, 1, 1.0), 0.5);
  EXPECT_EQ(sent_bytes(Kind::kAllGather, 3, bounds, 0, 1.0), 1);
  EXPECT_EQ(sent_bytes(Kind::kAllGather, 3, bounds, 2, 8.0), 4);
}

TEST(TrafficTest, ARingSendsToTheNextMember) {
  const std::vector<double> bounds = {0.25, 0.75};
  EXPECT_EQ(message_bytes(Kind::kAllReduce, 4, bounds, 3, 0, 1.0), 0.75);
  EXPECT_EQ(message_bytes(Kind::kAllReduce, 4, bounds, 3, 1, 1.0), 0);
  EXPECT_EQ(sent_bytes(Kind::kAllReduce, 4, bounds, 1, 1.0), 0.75);
}

TEST(TrafficTest, CountsElementsInWholeBytes) {
  EXPECT_EQ(sent_bytes<std::int64_t>(Kind::kReduceScatter, 3, Elements{10, 13, 13, 20}, 0, 4), 28);
  EXPECT_EQ(sent_bytes<std::int64_t>(Kind::kAllGather, 3, Elements{10, 13, 13, 20}, 0, 4), 24);
  EXPECT_EQ(sent_bytes<std::int64_t>(Kind::kAllGather, 3, Elements{10, 13, 13, 20}, 1, 4), 0);
  // 2 * 2 * 10 * 4 / 3 = 53.3
  EXPECT_EQ(sent_bytes<std::int64_t>(Kind::kAllReduce, 3, Elements{0, 10}, 2, 4), 53);
  // Large vectors stay exact.
  EXPECT_EQ(sent_bytes<std::int64_t>(Kind::kAllReduce, 2, Elements{0, 10'000'000'001}, 0, 8), 80'000'000'008);
}

TEST(TrafficTest, EveryMessageIsEncodedOnItsOwn) {
  const Elements bounds = {10, 13, 13, 320};
  // Slices of 3, 0 and 307 values.
  const auto int8 = [](std::int64_t values) { return encoded_bytes(Codec::kInt8, values); };
  EXPECT_EQ(encoded_sent_bytes(Kind::kReduceScatter, Codec::kInt8, 3, bounds, 0, 4), int8(307));
  EXPECT_EQ(encoded_sent_bytes(Kind::kReduceScatter, Codec::kInt8, 3, bounds, 1, 4), int8(3) + int8(307));
  EXPECT_EQ(encoded_sent_bytes(Kind::kAllGather, Codec::kInt8, 3, bounds, 0, 4), 2 * int8(3));
  EXPECT_EQ(encoded_sent_bytes(Kind::kAllGather, Codec::kInt8, 3, bounds, 1, 4), 0);
  EXPECT_EQ(encoded_sent_bytes(Kind::kAllReduce, Codec::kInt8, 2, Elements{0, 600}, 1, 4), int8(600));
  EXPECT_EQ(encoded_sent_bytes(Kind::kAllReduce, Codec::kBfloat16, 2, Elements{0, 601}, 1, 4), 1202);
  EXPECT_EQ(encoded_sent_bytes(Kind::kAllReduce, Codec::kFloat32, 3, Elements{0, 10}, 2, 4), 53) << "as it is";
}

TEST(TrafficTest, LoadsAreThoseOfTheEncodedMessages) {
  const Topology topology = testing::racks(2, 3, 1, 1);
  for (const Codec codec : all_codecs()) {
    const Lowering lowering = encoded(lower_hierarchically({0, 1, 2, 3, 4, 5}, topology), topology, Codecs(codec));
    constexpr std::int64_t kElements = 3 * kCodecBlock * 100;
    double expected = 0;
    for (const std::vector<Stage>& phase : lowering.phases) {
      for (const Stage& stage : phase) {
        Elements bounds;
        for (const double bound : stage.bounds) bounds.push_back(std::llround(bound * kElements));
        for (std::size_t i = 0; i < stage.members.size(); ++i) {
          if (stage.members[i] != 0) continue;
          expected += static_cast<double>(encoded_sent_bytes(stage.kind, codec, stage.members.size(), bounds, i, 4));
        }
      }
    }
    double found = 0;
    const LinkId up = topology.node(topology.host_at(0)).up;
    for (const auto& [link, bytes] : load_of(lowering, topology, 4 * kElements).bytes) found += link == up ? bytes : 0;
    EXPECT_DOUBLE_EQ(found, expected) << name_of(codec);
  }
}

TEST(TrafficTest, FractionsAndElementsTellTheSame) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t members = 2 + random() % 7;
    for (const Kind kind : kKinds) {
      constexpr std::int64_t kElements = 1 << 20;
      Elements elements = {static_cast<std::int64_t>(random() % 1000)};
      for (std::size_t i = 0; i < (kind == Kind::kAllReduce ? 1 : members); ++i) {
        elements.push_back(elements.back() + static_cast<std::int64_t>(random() % 1000));
      }
      std::vector<double> fractions;
      for (const std::int64_t element : elements) fractions.push_back(static_cast<double>(element) / kElements);
      for (std::size_t i = 0; i < members; ++i) {
        const auto exact = static_cast<double>(sent_bytes<std::int64_t>(kind, members, elements, i, 4));
        EXPECT_NEAR(sent_bytes(kind, members, fractions, i, 4.0 * kElements), exact, 1);
      }
    }
  }
}

// Some members of a random tree, in the order of the tree, with random slices of which some are empty.
Stage random_stage(Kind kind, const Topology& topology, std::mt19937& random) {
  Stage stage{kind, {}, {static_cast<double>(random() % 100) / 1000}};
  for (int position = 0; position < topology.workers(); ++position) {
    if (random() % 3 != 0) stage.members.push_back(topology.rank_at(position));
  }
  const std::size_t slices = kind == Kind::kAllReduce ? 1 : stage.members.size();
  for (std::size_t i = 0; i < slices; ++i) {
    const double room = 1 - stage.bounds.back();
    stage.bounds.push_back(stage.bounds.back() +
                           (random() % 4 == 0 ? 0 : room * static_cast<double>(random() % 100) / 400));
  }
  return stage;
}

// By the definition: each message on each link of its route.
std::vector<double> loads_of_messages(const Stage& stage, const Topology& topology) {
  std::vector<double> bytes(topology.links().size(), 0);
  for (const MemberTraffic& member : member_traffic(stage, topology)) {
    for (const auto& [link, link_bytes] : member.outgoing) bytes[index(link)] += link_bytes;
  }
  return bytes;
}

void expect_equal(const LinkLoads& loads, std::vector<double> expected, unsigned seed) {
  for (const auto& [link, bytes] : loads) {
    EXPECT_NEAR(bytes, expected[index(link)], 1e-9) << "seed " << seed << ", link " << link;
    expected[index(link)] = 0;
  }
  EXPECT_THAT(expected, ::testing::Each(0)) << "seed " << seed;
}

TEST(TrafficTest, LoadsOfAStageAreThoseOfItsMessages) {
  std::mt19937 random(3);
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Topology topology = testing::random_tree(seed, 40);
    for (const Kind kind : kKinds) {
      const Stage stage = random_stage(kind, topology, random);
      if (stage.members.size() < 2) continue;
      expect_equal(load_of(stage, topology, 1).bytes, loads_of_messages(stage, topology), seed);
    }
  }
}

TEST(TrafficTest, LoadsOfALoweringAreThoseOfItsMessages) {
  std::mt19937 random(4);
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Topology topology = testing::random_tree(seed, 40);
    Group group;
    for (Rank rank = 0; rank < topology.workers(); ++rank) {
      if (seed % 3 == 0 || random() % 2 == 0) group.push_back(rank);
    }
    for (const auto lowered : {lower_to_ring, lower_hierarchically, lower_to_servers}) {
      const Lowering lowering = lowered(group, topology);
      std::vector<double> expected(topology.links().size(), 0);
      for (const std::vector<Stage>& phase : lowering.phases) {
        for (const Stage& stage : phase) {
          const std::vector<double> part = loads_of_messages(stage, topology);
          std::transform(part.begin(), part.end(), expected.begin(), expected.begin(), std::plus());
        }
      }
      expect_equal(load_of(lowering, topology, 1).bytes, expected, seed);
    }
  }
}

TEST(TrafficTest, MembersSendAndReceiveTheSame) {
  std::mt19937 random(6);
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Topology topology = testing::random_tree(seed, 30);
    for (const Kind kind : kKinds) {
      const Stage stage = random_stage(kind, topology, random);
      if (stage.members.size() < 2) continue;
      std::vector<double> received(topology.links().size(), 0);
      for (const MemberTraffic& member : member_traffic(stage, topology)) {
        for (const auto& [link, bytes] : member.incoming) received[index(link)] += bytes;
      }
      const std::vector<double> sent = loads_of_messages(stage, topology);
      for (std::size_t link = 0; link < sent.size(); ++link) EXPECT_NEAR(sent[link], received[link], 1e-9);
    }
  }
}

TEST(TrafficTest, ColumnsShareTheCables) {
  const Topology topology = testing::racks(2, 2, 1, 1);
  const Lowering lowering = lower_hierarchically({0, 1, 2, 3}, topology);
  const GroupLoad one = load_of(lowering, topology, 100);
  const GroupLoad four = load_of(lowering, topology, 100, 4);
  ASSERT_EQ(one.bytes.size(), four.bytes.size());
  for (std::size_t i = 0; i < one.bytes.size(); ++i) {
    EXPECT_EQ(four.bytes[i].first, one.bytes[i].first);
    EXPECT_DOUBLE_EQ(four.bytes[i].second, 4 * one.bytes[i].second);
  }
  EXPECT_EQ(four.latency, one.latency);
  EXPECT_DOUBLE_EQ(four.busiest(topology).count(), 4 * one.busiest(topology).count());
}

}  // namespace
}  // namespace dssync
