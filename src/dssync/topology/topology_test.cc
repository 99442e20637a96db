// The tree that is built from switches and hosts: orders, links, routes, and what is refused.
#include "dssync/topology/topology.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Switches = std::vector<Topology::SwitchSpec>;
using Hosts = std::vector<Topology::HostSpec>;

constexpr Bandwidth kFast{25e6};
constexpr Bandwidth kSlow{6.25e6};

Topology::SwitchSpec a_switch(std::string name, std::string parent, int line = 0) {
  return {std::move(name), std::move(parent), kSlow, Seconds(1e-3), line};
}
Topology::HostSpec a_host(std::string name, std::string on, int workers = 1, int line = 0) {
  return {std::move(name), std::move(on), kFast, Seconds(1e-6), workers, line};
}

// A host directly on the core stands before the racks in the file, and rack-b's host before rack-a's.
Topology mixed_tree() {
  return Topology::build(
      {a_switch("core", ""), a_switch("rack-a", "core"), a_switch("rack-b", "core")},
      {a_host("c0", "core"), a_host("b0", "rack-b", 2), a_host("a0", "rack-a"), a_host("a1", "rack-a")}, "net.yaml");
}

std::string numbered(std::string name, int number) { return std::move(name.append(std::to_string(number))); }

std::string message_of(const Switches& switches, const Hosts& hosts) {
  try {
    Topology::build(switches, hosts, "net.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(TopologyTest, NodesStandDepthFirstSwitchesBeforeHosts) {
  const Topology topology = mixed_tree();
  std::vector<std::string> names;
  for (const Node& node : topology.nodes()) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("core", "rack-a", "a0", "a1", "rack-b", "b0", "c0"));
  EXPECT_THAT(topology.node(0).children, ElementsAre(1, 4, 6));
  EXPECT_EQ(topology.node(5).parent, 4);
  EXPECT_EQ(topology.node(5).kind, Node::Kind::kHost);
  EXPECT_THAT(topology.node(5).children, IsEmpty());
}

TEST(TopologyTest, RanksFollowTheFileAndPositionsTheTree) {
  const Topology topology = mixed_tree();
  // Ranks: c0 0, b0 1 and 2, a0 3, a1 4. Positions: a0 a1 b0 b0 c0.
  ASSERT_EQ(topology.workers(), 5);
  std::vector<Rank> ranks;
  for (int position = 0; position < 5; ++position) ranks.push_back(topology.rank_at(position));
  EXPECT_THAT(ranks, ElementsAre(3, 4, 1, 2, 0));
  for (int position = 0; position < 5; ++position)
    EXPECT_EQ(topology.position_of(topology.rank_at(position)), position);
  EXPECT_EQ(topology.node(topology.host_at(3)).name, "b0");
}

TEST(TopologyTest, RegionsAreRangesOfPositions) {
  const Topology topology = mixed_tree();
  const Node& rack_b = topology.node(4);
  EXPECT_EQ(rack_b.first, 2);
  EXPECT_EQ(rack_b.count, 2);
  EXPECT_EQ(topology.node(topology.root()).first, 0);
  EXPECT_EQ(topology.node(topology.root()).count, 5);
}

TEST(TopologyTest, WorkersAreNumberedOnAHostThatHasSeveral) {
  const Topology topology = mixed_tree();
  EXPECT_EQ(topology.worker_name(0), "c0");
  EXPECT_EQ(topology.worker_name(1), "b0/0");
  EXPECT_EQ(topology.worker_name(2), "b0/1");
  EXPECT_EQ(topology.worker_name(4), "a1");
}

TEST(TopologyTest, EveryCableHasALinkPerDirection) {
  const Topology topology = mixed_tree();
  EXPECT_EQ(topology.links().size(), 12U);
  EXPECT_EQ(topology.node(0).up, kNone);
  EXPECT_EQ(topology.node(0).down, kNone);
  const Node& rack_a = topology.node(1);
  EXPECT_EQ(topology.link(rack_a.up).name, "rack-a up");
  EXPECT_EQ(topology.link(rack_a.down).name, "rack-a down");
  EXPECT_EQ(topology.link(rack_a.up).capacity, kSlow);
  EXPECT_EQ(topology.link(rack_a.down).latency, Seconds(1e-3));
  const Node& a0 = topology.node(2);
  EXPECT_EQ(topology.link(a0.up).name, "a0 out");
  EXPECT_EQ(topology.link(a0.down).name, "a0 in");
  EXPECT_EQ(topology.link(a0.up).capacity, kFast);
  EXPECT_EQ(topology.link(a0.up).latency, Seconds(1e-6));
}

TEST(TopologyTest, OneHostIsATopology) {
  const Topology topology = Topology::build({a_switch("s", "")}, {a_host("only", "s")}, "net.yaml");
  EXPECT_EQ(topology.workers(), 1);
  EXPECT_EQ(topology.nodes().size(), 2U);
}

TEST(TopologyTest, AnEmptySwitchCarriesNothing) {
  const Topology topology =
      Topology::build({a_switch("core", ""), a_switch("spare", "core")}, {a_host("h", "core")}, "net.yaml");
  EXPECT_EQ(topology.node(1).name, "spare");
  EXPECT_EQ(topology.node(1).count, 0);
}

TEST(TopologyTest, SwitchesNestAtMost64Deep) {
  Switches chain{a_switch("s0", "", 1)};
  for (int i = 1; i < 64; ++i) chain.push_back(a_switch(numbered("s", i), numbered("s", i - 1), i + 1));
  const Topology deep = Topology::build(chain, {a_host("top", "s0"), a_host("bottom", "s63")}, "net.yaml");
  EXPECT_EQ(deep.worker_name(1), "bottom");
  EXPECT_EQ(deep.position_of(1), 0);
  for (int i = 64; i < 100'000; ++i) chain.push_back(a_switch(numbered("s", i), numbered("s", i - 1), i + 1));
  EXPECT_THAT(message_of(chain, {a_host("top", "s0")}),
              AllOf(StartsWith("net.yaml:65: "), HasSubstr("65 switches deep; expected at most 64")));
}

TEST(TopologyTest, AMillionWorkersAreBuilt) {
  Hosts many;
  for (int i = 0; i < Topology::kMaxWorkers; ++i) many.push_back(a_host(numbered("h", i), "s"));
  EXPECT_EQ(Topology::build({a_switch("s", "")}, many, "net.yaml").workers(), 1'000'000);
}

TEST(TopologyTest, RefusesACycleAndNamesIt) {
  EXPECT_THAT(message_of({a_switch("core", "", 2), a_switch("a", "c", 3), a_switch("b", "a", 4), a_switch("c", "b", 5)},
                         {a_host("h", "core", 6)}),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("cycle, a -> c -> b -> a;"), HasSubstr("one root")));
  EXPECT_THAT(message_of({a_switch("a", "a", 2)}, {a_host("h", "a")}),
              AllOf(StartsWith("net.yaml:2: "), HasSubstr("cycle, a -> a;")));
  EXPECT_THAT(
      message_of({a_switch("core", ""), a_switch("below", "a", 3), a_switch("a", "b", 4), a_switch("b", "a", 5)},
                 {a_host("h", "core")}),
      HasSubstr("cycle, a -> b -> a;"));
}

TEST(TopologyTest, RefusesAnUnknownParentAndSeveralRoots) {
  EXPECT_THAT(message_of({a_switch("core", ""), a_switch("a", "cor", 3)}, {a_host("h", "a")}),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("\"cor\""), HasSubstr("not defined")));
  EXPECT_THAT(message_of({a_switch("x", "", 2), a_switch("y", "", 3)}, {a_host("h", "x")}),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("\"x\" and \"y\""), HasSubstr("one root")));
}

TEST(TopologyTest, RefusesNamesThatAreUsedTwice) {
  EXPECT_THAT(message_of({a_switch("s", "", 2), a_switch("s", "s", 3)}, {a_host("h", "s")}),
              AllOf(StartsWith("net.yaml:3: "), HasSubstr("two switches named \"s\"")));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("h", "s", 1, 4), a_host("h", "s", 1, 5)}),
              AllOf(StartsWith("net.yaml:5: "), HasSubstr("two hosts named \"h\"")));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("s", "s", 1, 4)}),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("\"s\" is the name of a switch and of a host")));
}

TEST(TopologyTest, RefusesNamesThatCannotBeShown) {
  EXPECT_THAT(message_of({a_switch("", "")}, {a_host("h", "s")}), HasSubstr("empty name"));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("h 1", "s", 1, 4)}),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("space")));
  EXPECT_THAT(message_of({a_switch("s\n", "")}, {a_host("h", "s\n")}), HasSubstr("\"s\\x0a\""));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("h/0", "s")}), HasSubstr("a / in it"));
}

TEST(TopologyTest, RefusesHostsWithoutASwitchOrWorkers) {
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("h", "t", 1, 4)}),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("\"t\", which is not defined")));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("h", "s", 0, 4)}),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("0 workers")));
  EXPECT_THAT(message_of({a_switch("s", "")}, {}), HasSubstr("no host"));
  EXPECT_THAT(message_of({}, {}), HasSubstr("no switch"));
  EXPECT_THAT(message_of({a_switch("s", "")}, {a_host("g", "s", 1'000'000, 3), a_host("h", "s", 1, 4)}),
              AllOf(StartsWith("net.yaml:4: "), HasSubstr("at most 1000000")));
}

TEST(TopologyTest, RefusesRatesThatAreNotPositive) {
  Hosts hosts{a_host("h", "s", 1, 4)};
  hosts[0].nic = Bandwidth{0};
  EXPECT_THAT(message_of({a_switch("s", "")}, hosts), AllOf(StartsWith("net.yaml:4: "), HasSubstr("not above zero")));
  Switches switches{a_switch("s", ""), a_switch("t", "s", 3)};
  switches[1].uplink = Bandwidth{-1};
  EXPECT_THAT(message_of(switches, {a_host("h", "t")}), AllOf(StartsWith("net.yaml:3: "), HasSubstr("not above zero")));
}

}  // namespace
}  // namespace dssync
