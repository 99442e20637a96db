#include "text/network.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/name_list.h"

namespace dssync::cli {
namespace {

constexpr std::size_t kMaxLines = 40;
constexpr std::size_t kMaxChildren = 12;
constexpr std::size_t kMaxDepth = 12;
constexpr std::size_t kMaxNameColumns = 40;
constexpr std::size_t kFewSwitches = 8;  // up to here each switch has its own line

// Nodes that look alike down to their last host, in the same place of the tree below alike parents.
struct Bunch {
  std::vector<NodeId> nodes;
  std::size_t parents = 1;
};

struct Line {
  std::string head;  // branches and names
  std::string facts;
};

class Tree {
 public:
  Tree(const Topology& topology, const Style& style) : topology_(topology), style_(style) { classify(); }

  std::vector<Line> draw() {
    const Bunch root{{topology_.root()}, 1};
    lines_.push_back({names_of(root, 0), ""});
    draw_children(root, "", 1);
    const std::size_t left_out = topology_.nodes().size() - drawn_;
    if (left_out > 0)
      lines_.push_back({style_.glyphs().ellipsis, fmt::format("and {} more switches and hosts", left_out)});
    return std::move(lines_);
  }

 private:
  // Gives two nodes the same class if and only if their subtrees differ in names alone.
  void classify() {
    using Key = std::tuple<Node::Kind, double, double, int, std::vector<int>>;
    std::map<Key, int> classes;
    const auto& nodes = topology_.nodes();
    class_of_.resize(nodes.size());
    nics_.resize(nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const Node& node = nodes[i];
      std::vector<int> below;
      for (const NodeId child : node.children) {
        below.push_back(class_of_[static_cast<std::size_t>(child)]);
        nics_[i] += nics_[static_cast<std::size_t>(child)];
      }
      std::sort(below.begin(), below.end());
      const Link link = node.up == kNone ? Link{} : topology_.link(node.up);
      if (node.kind == Node::Kind::kHost) {
        nics_[i] = link.capacity.bytes_per_second;
      } else {
        ++switches_;
      }
      const Key key{node.kind, link.capacity.bytes_per_second, link.latency.count(), node.count, std::move(below)};
      class_of_[i] = classes.emplace(key, static_cast<int>(classes.size())).first->second;
    }
  }

  int class_of(NodeId id) const { return class_of_[static_cast<std::size_t>(id)]; }

  std::vector<Bunch> children_of(const Bunch& bunch) const {
    std::vector<Bunch> result;
    std::map<int, std::size_t> place;
    for (const NodeId parent : bunch.nodes) {
      for (const NodeId child : topology_.node(parent).children) {
        const bool apart = switches_ <= kFewSwitches && topology_.node(child).kind == Node::Kind::kSwitch;
        const auto [entry, is_new] = place.emplace(apart ? -1 - child : class_of(child), result.size());
        if (is_new) result.push_back({{}, bunch.nodes.size()});
        result[entry->second].nodes.push_back(child);
      }
    }
    return result;
  }

  void draw_children(const Bunch& parent, const std::string& indent, std::size_t depth) {
    const std::vector<Bunch> children = children_of(parent);
    for (std::size_t i = 0; i < std::min(children.size(), kMaxChildren); ++i) {
      if (depth > kMaxDepth || lines_.size() >= kMaxLines) return;
      const bool is_last = i + 1 == children.size();
      const std::string head = indent + (is_last ? style_.glyphs().last : style_.glyphs().branch);
      lines_.push_back({head + names_of(children[i], width(head)), facts_of(children[i])});
      drawn_ += children[i].nodes.size();
      draw_children(children[i], indent + (is_last ? "   " : style_.glyphs().pipe), depth + 1);
    }
  }

  std::string names_of(const Bunch& bunch, std::size_t used) const {
    std::vector<std::string> names;
    for (const NodeId id : bunch.nodes) names.push_back(topology_.node(id).name);
    return list_names(names, kMaxNameColumns - std::min(used, kMaxNameColumns - 8), style_);
  }

  // "4 hosts, NIC 200 Mbit/s", "uplink 50 Mbit/s (16:1 oversubscribed), latency 1 ms".
  std::string facts_of(const Bunch& bunch) const {
    const Node& node = topology_.node(bunch.nodes.front());
    const Link& link = topology_.link(node.up);
    const bool is_host = node.kind == Node::Kind::kHost;
    const std::size_t per_parent = bunch.nodes.size() / bunch.parents;
    std::string facts;
    if (is_host || bunch.nodes.size() > 1) facts = counted(per_parent, is_host ? "host" : "switch");
    if (!is_host && bunch.parents > 1) facts = fmt::format("{}", per_parent);
    if (bunch.parents > 1) facts += " in each";
    if (!facts.empty()) facts += ", ";
    if (is_host && node.count != 1)
      facts += counted(static_cast<std::size_t>(node.count), "worker") + (per_parent > 1 ? " each, " : ", ");
    facts += (is_host ? "NIC " : "uplink ") + format_bandwidth(link.capacity);
    if (!is_host) facts += subscription(bunch.nodes.front(), link);
    if (link.latency.count() > 0) facts += ", latency " + format_duration(link.latency);
    return facts;
  }

  // How much more the NICs below could send than the uplink takes.
  std::string subscription(NodeId id, const Link& link) const {
    const double ratio = nics_[static_cast<std::size_t>(id)] / link.capacity.bytes_per_second;
    return ratio > 1.05 ? fmt::format(" ({:.3g}:1 oversubscribed)", ratio) : "";
  }

  const Topology& topology_;
  const Style& style_;
  std::vector<int> class_of_;  // by NodeId
  std::vector<double> nics_;   // by NodeId: bytes per second of all NICs below
  std::size_t switches_ = 0;
  std::vector<Line> lines_;
  std::size_t drawn_ = 1;  // nodes; the root always is
};

}  // namespace

std::string draw_network(const Topology& topology, const Style& style) {
  const std::vector<Line> lines = Tree(topology, style).draw();
  std::size_t column = 0;
  for (const Line& line : lines) column = std::max(column, width(line.head));
  std::string result;
  for (const Line& line : lines) {
    std::string text = line.facts.empty() ? line.head : pad_right(line.head, column) + "  " + line.facts;
    result += "  " + clip(std::move(text), kPageWidth - 2, style) + "\n";
  }
  return result;
}

}  // namespace dssync::cli
