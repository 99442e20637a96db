// Building the tree: checks what the reader collected, then lays nodes, links and positions out depth first. Linear in
// the size of the input, and without recursion: a chain of switches may be as long as the file says.
#include "dssync/topology/topology.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

using SwitchSpec = Topology::SwitchSpec;
using HostSpec = Topology::HostSpec;

// Switches and hosts before they are laid out: who hangs below whom, by their place in the input.
class Draft {
 public:
  // REQUIRES: the arguments outlive the draft.
  Draft(const std::vector<SwitchSpec>& switches, const std::vector<HostSpec>& hosts, const std::string& source)
      : switches_(switches), hosts_(hosts), source_(source) {
    collect_switches();
    find_root();
    check_reachable();
    check_uplinks();
    collect_hosts();
  }

  int root() const { return root_; }
  const std::vector<int>& switches_below(int s) const { return switches_below_[index(s)]; }
  const std::vector<int>& hosts_below(int s) const { return hosts_below_[index(s)]; }
  int workers() const { return workers_; }

 private:
  [[noreturn]] void fail(int line, const std::string& message) const { throw InputError(source_, line, message); }

  void check_name(const std::string& name, int line, const char* what) const;
  void check_link(const std::string& name, Bandwidth rate, Seconds latency, int line, const char* what) const;
  void collect_switches();
  void find_root();
  void collect_hosts();
  void check_reachable() const;
  void check_uplinks() const;
  [[noreturn]] void fail_with_cycle(int member) const;

  const std::vector<SwitchSpec>& switches_;
  const std::vector<HostSpec>& hosts_;
  const std::string& source_;
  std::unordered_map<std::string_view, int> switch_by_name_;
  std::vector<int> parent_;  // of a switch; kNone at a root
  std::vector<std::vector<int>> switches_below_;
  std::vector<std::vector<int>> hosts_below_;
  int root_ = kNone;
  int workers_ = 0;
};

void Draft::check_name(const std::string& name, int line, const char* what) const {
  if (name.empty()) fail(line, fmt::format("a {} has an empty name; expected a name", what));
  const bool blank =
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
  if (blank) {
    fail(line, fmt::format("the name {} of a {} has a space or a control character in it; expected a name without",
                           quote(name), what));
  }
}

void Draft::check_link(const std::string& name, Bandwidth rate, Seconds latency, int line, const char* what) const {
  if (!(rate.bytes_per_second > 0) || !std::isfinite(rate.bytes_per_second)) {
    fail(line, fmt::format("the {} of {} is not above zero; expected a rate such as 10Gbps", what, quote(name)));
  }
  if (!(latency.count() >= 0) || !std::isfinite(latency.count())) {
    fail(line, fmt::format("the latency of {} is not zero or more; expected a time such as 50us", quote(name)));
  }
}

void Draft::collect_switches() {
  if (switches_.empty()) fail(0, "there is no switch; expected at least one");
  if (switches_.size() > index(Topology::kMaxWorkers)) {
    fail(0, fmt::format("there are {} switches; expected at most {}", switches_.size(), Topology::kMaxWorkers));
  }
  switch_by_name_.reserve(switches_.size());
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const SwitchSpec& spec = switches_[i];
    check_name(spec.name, spec.line, "switch");
    if (!switch_by_name_.emplace(spec.name, static_cast<int>(i)).second) {
      fail(spec.line, fmt::format("there are two switches named {}; expected each name once", quote(spec.name)));
    }
  }
  switches_below_.resize(switches_.size());
  hosts_below_.resize(switches_.size());
}

void Draft::find_root() {
  parent_.assign(switches_.size(), kNone);
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const SwitchSpec& spec = switches_[i];
    if (spec.parent.empty()) {
      if (root_ != kNone) {
        fail(spec.line, fmt::format("switches {} and {} both have no parent; expected one root, above all others",
                                    quote(switches_[index(root_)].name), quote(spec.name)));
      }
      root_ = static_cast<int>(i);
      continue;
    }
    const auto found = switch_by_name_.find(spec.parent);
    if (found == switch_by_name_.end()) {
      fail(spec.line, fmt::format("switch {} has the parent {}, which is not defined; expected the name of a switch",
                                  quote(spec.name), quote(spec.parent)));
    }
    parent_[i] = found->second;
    switches_below_[index(found->second)].push_back(static_cast<int>(i));
  }
  if (root_ == kNone) fail_with_cycle(0);
}

void Draft::collect_hosts() {
  std::unordered_map<std::string_view, int> seen;
  seen.reserve(hosts_.size());
  std::int64_t workers = 0;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const HostSpec& spec = hosts_[i];
    check_name(spec.name, spec.line, "host");
    if (spec.name.find('/') != std::string::npos) {
      fail(spec.line, fmt::format("the host name {} has a / in it; expected none, as it separates host and worker",
                                  quote(spec.name)));
    }
    check_link(spec.name, spec.nic, spec.latency, spec.line, "nic");
    if (!seen.emplace(spec.name, spec.line).second) {
      fail(spec.line, fmt::format("there are two hosts named {}; expected each name once", quote(spec.name)));
    }
    if (switch_by_name_.count(spec.name) != 0) {
      fail(spec.line,
           fmt::format("{} is the name of a switch and of a host; expected each name once", quote(spec.name)));
    }
    const auto found = switch_by_name_.find(spec.switch_name);
    if (found == switch_by_name_.end()) {
      fail(spec.line, fmt::format("host {} is on the switch {}, which is not defined; expected the name of a switch",
                                  quote(spec.name), quote(spec.switch_name)));
    }
    if (spec.workers < 1) {
      fail(spec.line, fmt::format("host {} has {} workers; expected 1 or more", quote(spec.name), spec.workers));
    }
    workers += spec.workers;
    if (workers > Topology::kMaxWorkers) {
      fail(spec.line, fmt::format("there are too many workers; expected at most {}", Topology::kMaxWorkers));
    }
    hosts_below_[index(found->second)].push_back(static_cast<int>(i));
  }
  if (workers == 0) fail(0, "there is no host; expected at least one");
  workers_ = static_cast<int>(workers);
}

// With one root, whatever the root does not reach hangs below a cycle.
void Draft::check_reachable() const {
  std::vector<bool> reached(switches_.size(), false);
  std::vector<std::pair<int, int>> open{{root_, 1}};
  while (!open.empty()) {
    const auto [s, depth] = open.back();
    open.pop_back();
    if (depth > Topology::kMaxDepth) {
      fail(switches_[index(s)].line, fmt::format("switch {} is {} switches deep; expected at most {}",
                                                 quote(switches_[index(s)].name), depth, Topology::kMaxDepth));
    }
    reached[index(s)] = true;
    for (const int below : switches_below(s)) open.emplace_back(below, depth + 1);
  }
  const auto lost = std::find(reached.begin(), reached.end(), false);
  if (lost != reached.end()) fail_with_cycle(static_cast<int>(lost - reached.begin()));
}

void Draft::check_uplinks() const {
  for (const SwitchSpec& spec : switches_) {
    if (!spec.parent.empty()) check_link(spec.name, spec.uplink, spec.latency, spec.line, "uplink");
  }
}

// REQUIRES: `start` is in a cycle of parents or below one.
void Draft::fail_with_cycle(int start) const {
  std::vector<bool> seen(switches_.size(), false);
  int s = start;
  while (!seen[index(s)]) {
    seen[index(s)] = true;
    s = parent_[index(s)];
  }
  constexpr int kShown = 8;
  std::string path = switches_[index(s)].name;
  int next = parent_[index(s)];
  for (int i = 1; i < kShown && next != s; ++i, next = parent_[index(next)])
    path += " -> " + switches_[index(next)].name;
  path += next == s ? " -> " + switches_[index(s)].name : " -> ...";
  fail(switches_[index(s)].line,
       fmt::format("the switches' parents form a cycle, {}; expected a tree with one root", path));
}

// What a node hangs on.
struct Cable {
  Bandwidth capacity;
  Seconds latency;
};

NodeId add_node(Node node, const Cable& cable, std::vector<Node>& nodes, std::vector<Link>& links) {
  const auto id = static_cast<NodeId>(nodes.size());
  if (node.parent != kNone) {
    const bool host = node.kind == Node::Kind::kHost;
    node.up = static_cast<LinkId>(links.size());
    node.down = node.up + 1;
    links.push_back({node.name + (host ? " out" : " up"), cable.capacity, cable.latency});
    links.push_back({node.name + (host ? " in" : " down"), cable.capacity, cable.latency});
    nodes[index(node.parent)].children.push_back(id);
  }
  nodes.push_back(std::move(node));
  return id;
}

// Nodes and links, depth first: under a switch, its switches and then its hosts. Returns for every node its place among
// the hosts of the input, kNone for a switch.
std::vector<int> lay_out(const Draft& draft, const std::vector<SwitchSpec>& switches,
                         const std::vector<HostSpec>& hosts, std::vector<Node>& nodes, std::vector<Link>& links) {
  struct Open {
    Node::Kind kind;
    int spec;
    NodeId parent;
  };
  std::vector<int> host_of;
  std::vector<Open> open{{Node::Kind::kSwitch, draft.root(), kNone}};
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    Node node;
    node.kind = at.kind;
    node.parent = at.parent;
    if (at.kind == Node::Kind::kHost) {
      const HostSpec& spec = hosts[index(at.spec)];
      node.name = spec.name;
      node.count = spec.workers;
      host_of.push_back(at.spec);
      add_node(std::move(node), {spec.nic, spec.latency}, nodes, links);
      continue;
    }
    const SwitchSpec& spec = switches[index(at.spec)];
    node.name = spec.name;
    host_of.push_back(kNone);
    const NodeId id = add_node(std::move(node), {spec.uplink, spec.latency}, nodes, links);
    const std::vector<int>& below = draft.switches_below(at.spec);
    const std::vector<int>& hosts_below = draft.hosts_below(at.spec);
    // The stack turns the order round.
    for (auto h = hosts_below.rbegin(); h != hosts_below.rend(); ++h) open.push_back({Node::Kind::kHost, *h, id});
    for (auto s = below.rbegin(); s != below.rend(); ++s) open.push_back({Node::Kind::kSwitch, *s, id});
  }
  return host_of;
}

}  // namespace

Topology Topology::build(const std::vector<SwitchSpec>& switches, const std::vector<HostSpec>& hosts,
                         const std::string& source) {
  const Draft draft(switches, hosts, source);
  std::vector<Rank> first_rank(hosts.size());
  for (std::size_t i = 1; i < hosts.size(); ++i) first_rank[i] = first_rank[i - 1] + hosts[i - 1].workers;

  Topology result;
  result.nodes_.reserve(switches.size() + hosts.size());
  result.links_.reserve(2 * (switches.size() + hosts.size() - 1));
  const std::vector<int> host_of = lay_out(draft, switches, hosts, result.nodes_, result.links_);

  result.rank_at_.reserve(index(draft.workers()));
  result.host_at_.reserve(index(draft.workers()));
  result.position_of_.resize(index(draft.workers()));
  for (std::size_t id = 0; id < result.nodes_.size(); ++id) {
    Node& node = result.nodes_[id];
    node.first = result.workers();
    if (node.kind == Node::Kind::kSwitch) continue;
    for (int w = 0; w < node.count; ++w) {
      const Rank rank = first_rank[index(host_of[id])] + w;
      result.position_of_[index(rank)] = result.workers();
      result.rank_at_.push_back(rank);
      result.host_at_.push_back(static_cast<NodeId>(id));
    }
  }
  for (std::size_t id = result.nodes_.size() - 1; id > 0; --id) {
    result.nodes_[index(result.nodes_[id].parent)].count += result.nodes_[id].count;
  }
  return result;
}

Topology Topology::with_capacities(const std::vector<Bandwidth>& capacities) const {
  Topology result = *this;
  for (std::size_t link = 0; link < result.links_.size(); ++link) result.links_[link].capacity = capacities[link];
  return result;
}

Topology Topology::without_latency() const {
  Topology result = *this;
  for (Link& link : result.links_) link.latency = Seconds(0);
  return result;
}

std::string Topology::worker_name(Rank rank) const {
  const int position = position_of(rank);
  const Node& host = node(host_at(position));
  if (host.count == 1) return host.name;
  return fmt::format("{}/{}", host.name, position - host.first);
}

}  // namespace dssync
