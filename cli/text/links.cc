#include "text/links.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/name_list.h"

namespace dssync::cli {
namespace {

constexpr std::size_t kMostLinks = 12;
constexpr std::size_t kLinkBarColumns = 20;
constexpr std::size_t kMaxLabel = 46;

// Cables of hosts, or of switches, whose loads look the same.
struct Row {
  std::string way;  // "out", "in", "both ways"
  LinkUse use;
  std::vector<NodeId> nodes;
  bool is_host = false;
  bool has_bottleneck = false;
};

bool looks_same(const LinkUse& a, const LinkUse& b) {
  return format_bytes(a.bytes_per_iteration) == format_bytes(b.bytes_per_iteration) &&
         format_duration(Seconds(a.seconds)) == format_duration(Seconds(b.seconds));
}

class LinkRows {
 public:
  LinkRows(const Cost& cost, const Topology& topology) : cost_(cost), topology_(topology) {
    for (NodeId id = 0; id < static_cast<NodeId>(topology.nodes().size()); ++id) {
      const Node& node = topology.node(id);
      if (node.up != kNone) add_cable(id, node);
    }
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
      return std::make_tuple(!a.has_bottleneck, -a.use.seconds) < std::make_tuple(!b.has_bottleneck, -b.use.seconds);
    });
  }

  const std::vector<Row>& rows() const { return rows_; }
  std::size_t idle() const { return idle_; }

 private:
  void add_cable(NodeId id, const Node& node) {
    const LinkUse& up = cost_.links[static_cast<std::size_t>(node.up)];
    const LinkUse& down = cost_.links[static_cast<std::size_t>(node.down)];
    if (looks_same(up, down)) {
      add(id, "both ways", up, node.up == cost_.bottleneck || node.down == cost_.bottleneck, 2);
      return;
    }
    const bool is_host = node.kind == Node::Kind::kHost;
    add(id, is_host ? "out" : "up", up, node.up == cost_.bottleneck, 1);
    add(id, is_host ? "in" : "down", down, node.down == cost_.bottleneck, 1);
  }

  void add(NodeId id, const std::string& way, const LinkUse& use, bool is_bottleneck, std::size_t links) {
    if (use.bytes_per_iteration == 0) {
      idle_ += links;
      return;
    }
    const bool is_host = topology_.node(id).kind == Node::Kind::kHost;
    const auto key =
        std::make_tuple(is_host, way, format_bytes(use.bytes_per_iteration), format_duration(Seconds(use.seconds)));
    const auto [entry, is_new] = place_.emplace(key, rows_.size());
    if (is_new) rows_.push_back({way, use, {}, is_host, false});
    Row& row = rows_[entry->second];
    row.nodes.push_back(id);
    row.has_bottleneck = row.has_bottleneck || is_bottleneck;
  }

  const Cost& cost_;
  const Topology& topology_;
  std::map<std::tuple<bool, std::string, std::string, std::string>, std::size_t> place_;
  std::vector<Row> rows_;
  std::size_t idle_ = 0;
};

// "8 NICs a[0-3], b[0-3]  both ways".
std::string label_of(const Row& row, const Topology& topology, const Style& style) {
  std::vector<std::string> names;
  for (const NodeId id : row.nodes) names.push_back(topology.node(id).name);
  const std::string kind = counted(row.nodes.size(), row.is_host ? "NIC" : "uplink");
  const std::string head = names.size() == 1 ? (row.is_host ? "NIC" : "uplink") : kind;
  const std::size_t room = kMaxLabel - width(head) - width(row.way) - 3;
  return fmt::format("{} {}, {}", head, list_names(names, room, style), row.way);
}

std::string row_text(const std::string& label, const std::string& bytes, double seconds, double iteration, Tint tint,
                     const Style& style) {
  const double share = seconds / iteration;
  const std::string percent = share < 0.005 ? "<1" : fmt::format("{:.0f}", 100 * share);
  return fmt::format("  {}  {}  {}  {:>3} %  {}\n", label, pad_left(bytes, 8),
                     pad_left(format_duration(Seconds(seconds)), 8), percent,
                     style.paint(style.bar(share, kLinkBarColumns), tint));
}

// What is not a row: links that did not fit, links without load, and latency, which is a wait and not a load.
std::string rest_text(const LinkRows& all, std::size_t shown, const Style& style) {
  std::string result;
  if (all.rows().size() > shown) {
    result += fmt::format("  {} and {} of load, {} at most\n", style.glyphs().ellipsis,
                          counted(all.rows().size() - shown, "more kind"),
                          format_duration(Seconds(all.rows()[shown].use.seconds)));
  }
  if (all.idle() > 0) result += fmt::format("  {} without load\n", counted(all.idle(), "link"));
  return result;
}

}  // namespace

std::string draw_links(const Cost& cost, const Topology& topology, const Style& style) {
  constexpr const char* kLatency = "latency of the longest chain of steps";
  const LinkRows all(cost, topology);
  const std::size_t shown = std::min(all.rows().size(), kMostLinks);
  std::vector<std::string> labels;
  std::size_t columns = cost.latency_seconds > 0 ? width(kLatency) : 0;
  for (std::size_t i = 0; i < shown; ++i) {
    labels.push_back(label_of(all.rows()[i], topology, style));
    columns = std::max(columns, width(labels.back()));
  }
  const std::string blank(columns, ' ');
  std::string result =
      style.paint(fmt::format("  {}  {:>8}  {:>8}  of the iteration", blank, "bytes", "time"), Tint::kDim) + "\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = all.rows()[i];
    result += row_text(pad_right(labels[i], columns), format_bytes(row.use.bytes_per_iteration), row.use.seconds,
                       cost.seconds_per_iteration, row.has_bottleneck ? Tint::kRed : Tint::kCyan, style);
  }
  if (cost.latency_seconds > 0) {
    result += row_text(pad_right(kLatency, columns), "", cost.latency_seconds, cost.seconds_per_iteration,
                       Tint::kYellow, style);
  }
  return result + rest_text(all, shown, style);
}

}  // namespace dssync::cli
