// The YAML writer.
#include "dssync/topology/write.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/name_pattern.h"
#include "dssync/base/text.h"
#include "dssync/topology/read.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

struct Unit {
  double size;
  std::string_view name;
};

// The shortest text in the largest fitting unit that `reads_back` accepts.
template <typename Predicate>
std::string shortest(double value, const std::vector<Unit>& units, Predicate reads_back) {
  const auto fitting =
      std::find_if(units.begin(), units.end() - 1, [value](const Unit& unit) { return value >= unit.size; });
  for (auto unit = fitting; unit != units.end(); ++unit) {
    for (const int digits : {6, 9, 12, 15, 17}) {
      std::string text = fmt::format("{:.{}g}{}", value / unit->size, digits, unit->name);
      if (reads_back(text)) return text;
    }
  }
  return fmt::format("{:.17g}{}", value / units.back().size, units.back().name);
}

std::string text_of(Bandwidth rate) {
  static const std::vector<Unit> kUnits{{1e12 / 8, "Tbps"}, {1e9 / 8, "Gbps"}, {1e6 / 8, "Mbps"},
                                        {1e3 / 8, "kbps"},  {1. / 8, "bps"},   {1, "B/s"}};
  return shortest(rate.bytes_per_second, kUnits,
                  [rate](const std::string& text) { return parse_bandwidth(text) == rate; });
}

std::string text_of(Seconds latency) {
  static const std::vector<Unit> kUnits{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  return shortest(latency.count(), kUnits,
                  [latency](const std::string& text) { return parse_duration(text) == latency; });
}

std::string yaml_name(std::string_view name) {
  if (name.find_first_of("[]") != std::string_view::npos) {
    throw Error(fmt::format("the name {} cannot be written to a topology file: it has a bracket", quote(name)));
  }
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string latency_of(const Topology& topology, const Node& node) {
  const Seconds latency = topology.link(node.up).latency;
  return latency.count() > 0 ? ", latency: " + text_of(latency) : "";
}

std::string switch_line(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  if (node.parent == kNone) return fmt::format("  - {{name: {}}}\n", yaml_name(node.name));
  return fmt::format("  - {{name: {}, parent: {}, uplink: {}{}}}\n", yaml_name(node.name),
                     yaml_name(topology.node(node.parent).name), text_of(cable_capacity(topology, id)),
                     latency_of(topology, node));
}

// Hosts in the order of their ranks.
std::vector<NodeId> hosts_of(const Topology& topology) {
  std::vector<NodeId> hosts;
  for (Rank rank = 0; rank < topology.workers(); ++rank) {
    const NodeId host = topology.host_at(topology.position_of(rank));
    if (hosts.empty() || hosts.back() != host) hosts.push_back(host);
  }
  return hosts;
}

// All that an entry says about a host but its name.
std::string traits_of(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  std::string text = fmt::format("switch: {}, nic: {}{}", yaml_name(topology.node(node.parent).name),
                                 text_of(cable_capacity(topology, id)), latency_of(topology, node));
  if (node.count != 1) text += fmt::format(", workers: {}", node.count);
  return text;
}

// Patterns for the names, or the names themselves where patterns would change their order.
std::vector<std::string> patterns_of(const std::vector<std::string>& names) {
  std::vector<std::string> quotes;
  for (const std::string& name : names) quotes.push_back(yaml_name(name));
  const std::vector<std::string> patterns = fold_names(names);
  std::vector<std::string> expanded;
  for (const std::string& pattern : patterns) {
    for (std::string& name : expand_host_range(pattern)) expanded.push_back(std::move(name));
  }
  if (expanded != names) return quotes;
  quotes.clear();
  for (const std::string& pattern : patterns) {
    quotes.push_back(pattern.find('[') == std::string::npos ? yaml_name(pattern) : "\"" + pattern + "\"");
  }
  return quotes;
}

}  // namespace

std::string write_yaml_topology(const Topology& topology) {
  std::string text = "switches:\n";
  for (std::size_t id = 0; id < topology.nodes().size(); ++id) {
    if (topology.nodes()[id].kind == Node::Kind::kSwitch) text += switch_line(topology, static_cast<NodeId>(id));
  }
  text += "hosts:\n";
  const std::vector<NodeId> hosts = hosts_of(topology);
  for (std::size_t i = 0; i < hosts.size();) {
    const std::string traits = traits_of(topology, hosts[i]);
    std::vector<std::string> names;
    for (; i < hosts.size() && traits_of(topology, hosts[i]) == traits; ++i) {
      names.push_back(topology.node(hosts[i]).name);
    }
    for (const std::string& pattern : patterns_of(names))
      text += fmt::format("  - {{name: {}, {}}}\n", pattern, traits);
  }
  return text;
}

}  // namespace dssync
