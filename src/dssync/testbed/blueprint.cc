#include "dssync/testbed/blueprint.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/interface_bytes.h"
#include "dssync/testbed/error.h"
#include "dssync/testbed/shaping.h"

namespace dssync {
namespace {

constexpr const char* kFabricAddress = "10.77.255.254";
constexpr int kHostsPerByte = 250;  // last bytes 1 to 250: none that looks like a network or a broadcast

std::string mac_of(int number) { return fmt::format("02:00:0a:4d:{:02x}:{:02x}", number / 256, number % 256); }

void check_rate(const std::string& link, Bandwidth rate) {
  if (rate >= kMinLinkRate && rate <= kMaxLinkRate) return;
  throw InputError(fmt::format("{}: {} cannot be emulated; a link of a testbed has from {} to {}", link,
                               format_bandwidth(rate), format_bandwidth(kMinLinkRate), format_bandwidth(kMaxLinkRate)));
}

void add_links(Blueprint& plan, const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (node.up == kNone) return;
  const bool is_host = node.kind == Node::Kind::kHost;
  const auto make = [&](LinkId link_id) -> LinkPlan& {
    const Link& link = topology.link(link_id);
    check_rate(link.name, link.capacity);
    LinkPlan& result = plan.links[static_cast<std::size_t>(link_id)];
    result.name = link.name;
    result.capacity = link.capacity;
    result.latency = link.latency;
    return result;
  };
  LinkPlan& up = make(node.up);
  LinkPlan& down = make(node.down);
  down.device = down.counter = fmt::format("{}{}", is_host ? 'h' : 'd', id);
  up.device = is_host ? "eth0" : fmt::format("u{}", id);
  up.host = is_host ? id : kNone;
  up.counter = is_host ? down.device : up.device;
  up.is_received = is_host;
}

// The interface of a switch's bridge that leads to a node: the port of the child that it is or is below, else the
// uplink.
std::string port_towards(const Blueprint& plan, NodeId at, NodeId target) {
  for (NodeId below = target; below != kNone; below = plan.nodes[static_cast<std::size_t>(below)].parent) {
    const NodePlan& node = plan.nodes[static_cast<std::size_t>(below)];
    if (node.parent == at) return fmt::format("{}{}", node.is_host ? 'h' : 'd', below);
  }
  return fmt::format("u{}", at);
}

std::vector<NodeId> path_up(const Blueprint& plan, NodeId node) {
  std::vector<NodeId> path;
  for (; node != kNone; node = plan.nodes[static_cast<std::size_t>(node)].parent) path.push_back(node);
  return path;
}

// On `lo`, because cables vanish with the fabric while a process in a host may live on.
std::string mark_lines(const std::string& mark) {
  std::string text;
  std::istringstream addresses(mark);
  for (std::string address; addresses >> address;) text += fmt::format("address add {}/32 dev lo\n", address);
  return text;
}

std::string port_lines(const std::string& port, NodeId bridge) {
  return fmt::format(
      "link set dev {0} master s{1} up\n"
      "link set dev {0} type bridge_slave learning off flood off mcast_flood off\n",
      port, bridge);
}

Bandwidth slowest_between(const Blueprint& plan, NodeId from, NodeId to) {
  Bandwidth slowest = kMaxLinkRate;
  for (const LinkId link : links_between(plan, from, to)) {
    slowest = std::min(slowest, plan.links[static_cast<std::size_t>(link)].capacity);
  }
  return slowest;
}

// TCP is set for each path. The kind of path that most are has the network's route, the others have routes of their
// own.
std::string route_lines(const Blueprint& plan, NodeId host) {
  std::map<std::string, std::vector<const HostPlan*>> by_settings;
  for (const HostPlan& other : plan.hosts) {
    if (other.node == host) continue;
    const LinkId cable = links_between(plan, host, other.node).front();
    const Bandwidth nic = plan.links[static_cast<std::size_t>(cable)].capacity;
    by_settings[route_settings(nic, slowest_between(plan, host, other.node))].push_back(&other);
  }
  if (by_settings.empty()) by_settings[""];  // there is no other host
  const auto usual = std::max_element(by_settings.begin(), by_settings.end(),
                                      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const std::string& own = host_plan(plan, host).address;
  std::string text = fmt::format("route add 10.77.0.0/16 dev eth0 src {} {}\n", own, usual->first);
  for (const auto& [settings, others] : by_settings) {
    if (settings == usual->first) continue;
    for (const HostPlan* other : others) {
      text += fmt::format("route add {}/32 dev eth0 src {} {}\n", other->address, own, settings);
    }
  }
  return text;
}

}  // namespace

const HostPlan& host_plan(const Blueprint& blueprint, NodeId host) {
  const auto found = std::lower_bound(blueprint.hosts.begin(), blueprint.hosts.end(), host,
                                      [](const HostPlan& plan, NodeId id) { return plan.node < id; });
  if (found == blueprint.hosts.end() || found->node != host) {
    throw InputError(fmt::format("node {} is not a host of this testbed", host));
  }
  return *found;
}

Blueprint blueprint_of(const Topology& topology, const std::string& mark) {
  Blueprint plan;
  plan.links.resize(topology.links().size());
  plan.fabric_address = kFabricAddress;
  plan.fabric_mac = mac_of(0);
  plan.mark = mark;
  for (NodeId id = 0; id < static_cast<NodeId>(topology.nodes().size()); ++id) {
    const Node& node = topology.node(id);
    const bool is_host = node.kind == Node::Kind::kHost;
    plan.nodes.push_back(
        {.name = node.name, .is_host = is_host, .parent = node.parent, .up = node.up, .down = node.down});
    add_links(plan, topology, id);
    if (!is_host) continue;
    const auto number = static_cast<int>(plan.hosts.size());
    plan.hosts.push_back({.node = id,
                          .address = fmt::format("10.77.{}.{}", number / kHostsPerByte, 1 + number % kHostsPerByte),
                          .mac = mac_of(number + 1)});
  }
  if (plan.hosts.size() > kMaxTestbedHosts) {
    throw InputError(
        fmt::format("{} hosts are too many to emulate; a testbed has at most {}", plan.hosts.size(), kMaxTestbedHosts));
  }
  return plan;
}

std::vector<LinkId> links_between(const Blueprint& plan, NodeId from, NodeId to) {
  std::vector<NodeId> up = path_up(plan, from);
  std::vector<NodeId> down = path_up(plan, to);
  while (!up.empty() && !down.empty() && up.back() == down.back()) {
    up.pop_back();
    down.pop_back();
  }
  std::vector<LinkId> result;
  for (const NodeId node : up) result.push_back(plan.nodes[static_cast<std::size_t>(node)].up);
  for (auto node = down.rbegin(); node != down.rend(); ++node) {
    result.push_back(plan.nodes[static_cast<std::size_t>(*node)].down);
  }
  return result;
}

std::string fabric_ip_batch(const Blueprint& blueprint, const NamespaceFile& namespace_of) {
  std::string text = "link set dev lo up\n";
  for (std::size_t id = 0; id < blueprint.nodes.size(); ++id) {
    if (blueprint.nodes[id].is_host) continue;
    text += fmt::format("link add name s{} {}type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n", id,
                        id == 0 ? fmt::format("address {} ", blueprint.fabric_mac) : "");
    text += fmt::format("link set dev s{} up\n", id);
  }
  for (std::size_t id = 1; id < blueprint.nodes.size(); ++id) {
    const NodePlan& node = blueprint.nodes[id];
    const auto number = static_cast<NodeId>(id);
    if (node.is_host) {
      text += fmt::format("link add name h{0} mtu {1} type veth peer name eth0 mtu {1} address {2} netns {3}\n", id,
                          kMtu, host_plan(blueprint, number).mac, namespace_of(number));
      text += port_lines(fmt::format("h{}", id), node.parent);
    } else {
      text += fmt::format("link add name d{0} mtu {1} type veth peer name u{0} mtu {1}\n", id, kMtu);
      text += port_lines(fmt::format("d{}", id), node.parent) + port_lines(fmt::format("u{}", id), number);
    }
  }
  text += fmt::format("address add {}/16 dev s0\n", blueprint.fabric_address);
  for (const HostPlan& host : blueprint.hosts) {
    text += fmt::format("neigh replace {} lladdr {} dev s0 nud permanent\n", host.address, host.mac);
  }
  text += mark_lines(blueprint.mark);
  return text;
}

std::string fabric_bridge_batch(const Blueprint& blueprint) {
  std::string text;
  for (std::size_t id = 0; id < blueprint.nodes.size(); ++id) {
    if (blueprint.nodes[id].is_host) continue;
    const auto at = static_cast<NodeId>(id);
    for (const HostPlan& host : blueprint.hosts) {
      text += fmt::format("fdb replace {} dev {} master static\n", host.mac, port_towards(blueprint, at, host.node));
    }
    if (at != 0) text += fmt::format("fdb replace {} dev u{} master static\n", blueprint.fabric_mac, at);
  }
  return text;
}

std::string host_ip_batch(const Blueprint& blueprint, NodeId host) {
  const std::string& own = host_plan(blueprint, host).address;
  const NodePlan& node = blueprint.nodes[static_cast<std::size_t>(host)];
  const LinkPlan& nic = blueprint.links[static_cast<std::size_t>(node.up)];
  // Without a limit, up to 64 kB would be sent as one frame, whatever the link's burst.
  std::string text = fmt::format(
      "link set dev lo up\n"
      "link set dev eth0 gso_max_segs {} up\n"
      "address add {}/16 dev eth0 noprefixroute\n",
      frames_at_once(nic.capacity), own);
  text += route_lines(blueprint, host);
  const auto add_neighbour = [&](const std::string& address, const std::string& mac) {
    text += fmt::format("neigh replace {} lladdr {} dev eth0 nud permanent\n", address, mac);
  };
  for (const HostPlan& other : blueprint.hosts) {
    if (other.node != host) add_neighbour(other.address, other.mac);
  }
  add_neighbour(blueprint.fabric_address, blueprint.fabric_mac);
  text += mark_lines(blueprint.mark);
  return text;
}

std::string tc_batch(const Blueprint& blueprint, NodeId host) {
  std::string text;
  for (const LinkPlan& link : blueprint.links) {
    if (link.host == host) text += shaping_lines(link.device, link.capacity, link.latency);
  }
  return text;
}

std::string reshape_batch(const LinkPlan& link, Bandwidth rate) {
  check_rate(link.name, rate);
  return reshaping_lines(link.device, rate);
}

std::vector<std::uint64_t> bytes_by_link(const std::vector<LinkPlan>& links, const std::string& proc_net_dev) {
  const std::map<std::string, InterfaceBytes> counters = interface_bytes(proc_net_dev);
  std::vector<std::uint64_t> result;
  for (const LinkPlan& link : links) {
    const auto found = counters.find(link.counter);
    if (found == counters.end())
      throw TestbedError(fmt::format("no counter for {}: {} is gone", link.name, link.counter));
    result.push_back(link.is_received ? found->second.received : found->second.sent);
  }
  return result;
}

}  // namespace dssync
