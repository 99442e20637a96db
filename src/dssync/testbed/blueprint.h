// A topology as interfaces, addresses and commands of iproute2: everything about a testbed that can be known without
// touching the kernel. Plain values; thread-safe.
//
// All switches are bridges in one namespace, the fabric: `s3` is the switch with NodeId 3. Every host is a namespace of
// its own. A host's cable is a pair of interfaces, `eth0` in the host and `h7` in the fabric; a switch's uplink is the
// pair `u3` on its own bridge and `d3` on its parent's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

inline constexpr int kMaxTestbedHosts = 256;  // each knows the address of each

struct HostPlan {
  NodeId node = kNone;
  std::string address;  // "10.77.0.5"
  std::string mac;
};

// One direction of a cable: where it is shaped, and where it is counted.
struct LinkPlan {
  std::string name;
  Bandwidth capacity;
  Seconds latency{0};
  NodeId host = kNone;       // whose namespace has the shaped interface; kNone: the fabric
  std::string device;        // the shaped interface
  std::string counter;       // the interface in the fabric that counts it
  bool is_received = false;  // there
};

struct NodePlan {
  std::string name;
  bool is_host = false;
  NodeId parent = kNone;
  LinkId up = kNone;
  LinkId down = kNone;
};

struct Blueprint {
  std::vector<NodePlan> nodes;  // by NodeId
  std::vector<HostPlan> hosts;  // by NodeId
  std::vector<LinkPlan> links;  // by LinkId
  std::string fabric_address;
  std::string fabric_mac;
  // Random addresses, 127.X.Y.Z with spaces between, that every namespace of this testbed has, and none of another's.
  std::string mark;
};

// Throws InputError where the topology has too many hosts or a rate that cannot be shaped.
Blueprint blueprint_of(const Topology& topology, const std::string& mark);

const HostPlan& host_plan(const Blueprint& blueprint, NodeId host);

// The links from one host to another, in the order they are crossed; none within a host.
std::vector<LinkId> links_between(const Blueprint& plan, NodeId from, NodeId to);

// Where the file of a host's namespace is, for `ip link ... netns`.
using NamespaceFile = std::function<std::string(NodeId host)>;

std::string fabric_ip_batch(const Blueprint& blueprint, const NamespaceFile& namespace_of);
std::string fabric_bridge_batch(const Blueprint& blueprint);
std::string host_ip_batch(const Blueprint& blueprint, NodeId host);
// The shaping of every link whose interface is in this host, or, for kNone, in the fabric.
std::string tc_batch(const Blueprint& blueprint, NodeId host);
// What gives a link another rate. Throws InputError where that cannot be shaped.
std::string reshape_batch(const LinkPlan& link, Bandwidth rate);

// The bytes that each link carried, by LinkId, from the fabric's /proc/net/dev. Throws TestbedError where an interface
// is missing.
std::vector<std::uint64_t> bytes_by_link(const std::vector<LinkPlan>& links, const std::string& proc_net_dev);

}  // namespace dssync
