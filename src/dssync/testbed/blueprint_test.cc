// Addresses, names and commands against values worked out by hand.
#include "dssync/testbed/blueprint.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/testing.h"
#include "dssync/topology/read.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using testing::node_called;

constexpr const char* kMark = "127.11.22.33 127.44.55.66";

// core 0; rack-a 1 with a0 2, a1 3; rack-b 4 with b0 5.
Topology small_racks() {
  return read_yaml_topology(R"(
defaults: {nic: 200Mbps}
switches:
  - {name: core}
  - {name: rack-a, parent: core, uplink: 50Mbps}
  - {name: rack-b, parent: core, uplink: 40Mbps}
hosts:
  - {name: "a[0-1]", switch: rack-a}
  - {name: b0, switch: rack-b, nic: 100Mbps}
)",
                            "two-racks.yaml")
      .topology;
}

const LinkPlan& link_called(const Blueprint& plan, const std::string& name) {
  for (const LinkPlan& link : plan.links) {
    if (link.name == name) return link;
  }
  throw Error("no link " + name);
}

TEST(BlueprintTest, HostsHaveAddressesInOrder) {
  const Topology topology = small_racks();
  const Blueprint plan = blueprint_of(topology, kMark);
  EXPECT_EQ(host_plan(plan, node_called(topology, "a0")).address, "10.77.0.1");
  EXPECT_EQ(host_plan(plan, node_called(topology, "a1")).address, "10.77.0.2");
  EXPECT_EQ(host_plan(plan, node_called(topology, "b0")).address, "10.77.0.3");
  EXPECT_THROW(host_plan(plan, node_called(topology, "rack-a")), InputError);
}

TEST(BlueprintTest, AddressesAreDistinctAndLookLikeHosts) {
  const Blueprint plan = blueprint_of(testing::flat(kMaxTestbedHosts, 1e6), kMark);
  std::set<std::string> addresses{plan.fabric_address};
  std::set<std::string> macs{plan.fabric_mac};
  for (const HostPlan& host : plan.hosts) {
    EXPECT_TRUE(addresses.insert(host.address).second) << host.address;
    EXPECT_TRUE(macs.insert(host.mac).second) << host.mac;
    EXPECT_FALSE(host.address.ends_with(".0") || host.address.ends_with(".255")) << host.address;
  }
  EXPECT_EQ(plan.hosts.back().address, "10.77.1.6");
}

TEST(BlueprintTest, EveryLinkIsShapedWhereItStartsAndCountedInTheFabric) {
  const Topology topology = small_racks();
  const Blueprint plan = blueprint_of(topology, kMark);
  const NodeId a0 = node_called(topology, "a0");
  const NodeId rack = node_called(topology, "rack-a");
  const LinkPlan& out = link_called(plan, "a0 out");
  EXPECT_EQ(out.host, a0);
  EXPECT_EQ(out.device, "eth0");
  EXPECT_EQ(out.counter, "h" + std::to_string(a0));
  EXPECT_TRUE(out.is_received);
  const LinkPlan& in = link_called(plan, "a0 in");
  EXPECT_EQ(in.host, kNone);
  EXPECT_EQ(in.device, out.counter);
  EXPECT_FALSE(in.is_received);
  EXPECT_EQ(link_called(plan, "rack-a up").device, "u" + std::to_string(rack));
  EXPECT_EQ(link_called(plan, "rack-a down").device, "d" + std::to_string(rack));
}

TEST(BlueprintTest, TooManyHostsAreRefused) {
  EXPECT_THROW(blueprint_of(testing::flat(kMaxTestbedHosts + 1, 1e6), kMark), InputError);
}

TEST(BlueprintTest, RatesThatNoKernelShapesAreRefusedByName) {
  try {
    blueprint_of(testing::hosts_with_nics({1e6, 1}), kMark);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("h1 out: 8 bit/s cannot be emulated"));
  }
}

TEST(BlueprintTest, PathsCrossTheLinksOfTheTree) {
  const Topology topology = small_racks();
  const Blueprint plan = blueprint_of(topology, kMark);
  const auto names = [&](const std::string& from, const std::string& to) {
    std::vector<std::string> result;
    for (const LinkId link : links_between(plan, node_called(topology, from), node_called(topology, to))) {
      result.push_back(plan.links[static_cast<std::size_t>(link)].name);
    }
    return result;
  };
  EXPECT_THAT(names("a0", "a1"), ElementsAre("a0 out", "a1 in"));
  EXPECT_THAT(names("a0", "b0"), ElementsAre("a0 out", "rack-a up", "rack-b down", "b0 in"));
  EXPECT_THAT(names("a0", "a0"), ElementsAre());
}

TEST(BlueprintTest, FabricHasABridgePerSwitchAndAPairPerCable) {
  const Topology topology = small_racks();
  const std::string text = fabric_ip_batch(blueprint_of(topology, kMark), [](NodeId) { return "/proc/7/fd/9"; });
  EXPECT_THAT(text, HasSubstr("link add name s0 address 02:00:0a:4d:00:00 type bridge stp_state 0"));
  EXPECT_THAT(text, HasSubstr("type veth peer name eth0 mtu 9000 address 02:00:0a:4d:00:01 netns /proc/7/fd/9\n"));
  EXPECT_THAT(text, HasSubstr("address add 10.77.255.254/16 dev s0\n"));
  const std::string rack = std::to_string(node_called(topology, "rack-b"));
  EXPECT_THAT(text, HasSubstr("link set dev d" + rack + " master s0 up\n"));
  EXPECT_THAT(text, HasSubstr("link set dev u" + rack + " master s" + rack + " up\n"));
}

TEST(BlueprintTest, BridgesKnowTheWayToEveryHost) {
  const Topology topology = small_racks();
  const std::string text = fabric_bridge_batch(blueprint_of(topology, kMark));
  const std::string rack_a = std::to_string(node_called(topology, "rack-a"));
  const std::string b0 = std::to_string(node_called(topology, "b0"));
  // b0 is the third host. From rack-a the way is up, from the core down to rack-b, there it is at the port.
  EXPECT_THAT(text, HasSubstr("fdb replace 02:00:0a:4d:00:03 dev u" + rack_a + " master static\n"));
  EXPECT_THAT(text, HasSubstr("fdb replace 02:00:0a:4d:00:03 dev d"));
  EXPECT_THAT(text, HasSubstr("fdb replace 02:00:0a:4d:00:03 dev h" + b0 + " master static\n"));
}

TEST(BlueprintTest, HostsKnowEachOtherAndTheMark) {
  const Topology topology = small_racks();
  const std::string text = host_ip_batch(blueprint_of(topology, kMark), node_called(topology, "a0"));
  EXPECT_THAT(text, HasSubstr("address add 10.77.0.1/16 dev eth0"));
  EXPECT_THAT(text, Not(HasSubstr("neigh replace 10.77.0.1 ")));
  EXPECT_THAT(text, HasSubstr("neigh replace 10.77.0.3 lladdr 02:00:0a:4d:00:03 dev eth0 nud permanent\n"));
  EXPECT_THAT(text, HasSubstr("neigh replace 10.77.255.254 lladdr 02:00:0a:4d:00:00 "));
  EXPECT_THAT(text, HasSubstr("address add 127.11.22.33/32 dev lo\naddress add 127.44.55.66/32 dev lo\n"));
}

TEST(BlueprintTest, BytesComeFromTheRightColumn) {
  const std::string table =
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
      "compressed\n"
      "    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0 "
      " 0\n"
      "    h1: 1234567890123      17    0    0    0     0          0         0 42 3    0    0    0     0       0  0\n";
  std::vector<LinkPlan> links(2);
  links[0].counter = links[1].counter = "h1";
  links[0].is_received = true;
  EXPECT_THAT(bytes_by_link(links, table), ElementsAre(1234567890123U, 42U));
  links[0].counter = "h2";
  EXPECT_THROW(bytes_by_link(links, table), TestbedError);
}

}  // namespace
}  // namespace dssync
