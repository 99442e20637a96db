#include "dssync/report/network_chart.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/name_pattern.h"
#include "dssync/report/markup.h"

namespace dssync {
namespace {

constexpr std::size_t kMostHosts = 64;
constexpr std::size_t kMostRows = 80;
constexpr double kBox = 86;
constexpr double kLevelPitch = 182;
constexpr double kRow = 22;
constexpr double kGap = 9;  // between the hosts of one switch and those of the next
constexpr double kSwitchRoom = 44;
constexpr double kTextRoom = 196;

// A node of the drawing: a switch, a host, or the hosts of a switch that are drawn as one.
struct Drawn {
  std::string name;
  bool is_leaf = false;
  int parent = -1;
  int depth = 0;
  double y = 0;
  double bytes_per_second = 0;
  std::optional<double> share;  // of the busier direction
  std::vector<int> ranks;
  std::size_t hosts = 1;
};

std::map<std::string, double> shares_by_node(const RunGroup& group) {
  std::map<std::string, double> result;
  for (const LinkLoad& link : group.links) {
    if (!link.measured_share && !link.predicted_share) continue;
    double& share = result[link.name.substr(0, link.name.rfind(' '))];
    share = std::max(share, link.share());
  }
  return result;
}

class Tree {
 public:
  Tree(const Network& network, const std::map<std::string, double>& shares) : network_(network), shares_(shares) {
    children_.resize(network.nodes.size());
    std::size_t hosts = 0;
    for (std::size_t i = 1; i < network.nodes.size(); ++i) children_[std::size_t(network.nodes[i].parent)].push_back(i);
    for (const NetworkNode& node : network.nodes) hosts += node.is_host ? 1 : 0;
    folds_ = hosts > kMostHosts;
    if (!network.nodes.empty()) add(0, -1, 0);
  }

  const std::vector<Drawn>& nodes() const { return nodes_; }
  double height() const { return y_ + kRow; }
  std::size_t hidden() const { return hidden_; }
  int depth() const { return depth_; }

 private:
  // Returns whether there was room for it.
  bool add(std::size_t index, int parent, int depth) {
    const NetworkNode& node = network_.nodes[index];
    const bool is_leaf = children_[index].empty();
    constexpr int kDeepest = 64;  // as topologies have it
    if (depth > kDeepest || (is_leaf && !take_row())) return false;
    const auto place = nodes_.size();
    nodes_.push_back({node.name, is_leaf, parent, depth, y_, node.bytes_per_second, share_of(node.name), node.ranks});
    depth_ = std::max(depth_, depth);
    if (is_leaf) return true;
    const double begin = y_;
    const bool has_leaves = network_.nodes[children_[index].front()].is_host;
    add_children(index, static_cast<int>(place), depth + 1);
    if (nodes_.size() == place + 1) {
      nodes_.pop_back();
      return false;
    }
    center(place);
    // The speed and the load of the switch's own cable need room, too.
    if (has_leaves) y_ += std::max(kGap, kSwitchRoom - (y_ - begin));
    return true;
  }

  void add_children(std::size_t index, int parent, int depth) {
    std::map<double, std::vector<std::size_t>> hosts;  // by speed
    for (const std::size_t child : children_[index]) {
      if (folds_ && network_.nodes[child].is_host) {
        hosts[network_.nodes[child].bytes_per_second].push_back(child);
      } else {
        add(child, parent, depth);
      }
    }
    for (const auto& [speed, members] : hosts) add_folded(members, speed, parent, depth);
  }

  void add_folded(const std::vector<std::size_t>& members, double speed, int parent, int depth) {
    if (!take_row()) return;
    Drawn drawn{.name = {},
                .is_leaf = true,
                .parent = parent,
                .depth = depth,
                .y = y_,
                .bytes_per_second = speed,
                .share = {},
                .ranks = {},
                .hosts = members.size()};
    std::vector<std::string> names;
    for (const std::size_t member : members) {
      const NetworkNode& node = network_.nodes[member];
      names.push_back(node.name);
      drawn.ranks.insert(drawn.ranks.end(), node.ranks.begin(), node.ranks.end());
      const std::optional<double> share = share_of(node.name);
      if (share) drawn.share = std::max(drawn.share.value_or(0), *share);
    }
    drawn.name = fmt::format("{}", fmt::join(fold_names(names), ", "));
    depth_ = std::max(depth_, depth);
    nodes_.push_back(std::move(drawn));
  }

  bool take_row() {
    if (rows_ == kMostRows) {
      ++hidden_;
      return false;
    }
    ++rows_;
    y_ += kRow;
    return true;
  }

  // A switch stands in the middle of what is below it.
  void center(std::size_t place) {
    double low = 1e9;
    double high = 0;
    for (std::size_t i = place + 1; i < nodes_.size(); ++i) {
      if (nodes_[i].parent != static_cast<int>(place)) continue;
      low = std::min(low, nodes_[i].y);
      high = std::max(high, nodes_[i].y);
    }
    nodes_[place].y = (low + high) / 2;
  }

  std::optional<double> share_of(const std::string& name) const {
    const auto place = shares_.find(name);
    return place == shares_.end() ? std::nullopt : std::optional(place->second);
  }

  const Network& network_;
  const std::map<std::string, double>& shares_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<Drawn> nodes_;
  std::size_t rows_ = 0;
  double y_ = 0;  // of the last row
  std::size_t hidden_ = 0;
  int depth_ = 0;
  bool folds_ = false;
};

double left_of(const Drawn& node) { return 6 + kLevelPitch * node.depth; }

int load_class(double share) { return std::clamp(static_cast<int>(share * 5), 0, 4); }

bool is_bottleneck(const Drawn& node, double most) { return node.share && most > 0 && *node.share >= 0.95 * most; }

// "ranks 0-7", "rank 3".
std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const auto [low, high] = std::minmax_element(ranks.begin(), ranks.end());
  const bool is_run = static_cast<std::size_t>(*high - *low) + 1 == ranks.size();
  return is_run ? fmt::format("ranks {}–{}", *low, *high) : fmt::format("{} ranks", ranks.size());
}

std::string load_text(const Drawn& node, bool hot) {
  std::string text = node.bytes_per_second > 0 ? shown_rate(node.bytes_per_second) : std::string();
  if (node.share) text += fmt::format("{}{}", text.empty() ? "" : " · ", shown_percent(*node.share, 0));
  return hot ? text + " ▲" : text;
}

std::string draw_edge(const Drawn& node, const Drawn& parent, double most) {
  const double from = left_of(parent) + kBox;
  const double bus = from + 14;
  const double to = left_of(node);
  const bool hot = is_bottleneck(node, most);
  std::string out = fmt::format(R"(<path class="bus" d="M{} {}H{}V{}"/>)", coordinate(from), coordinate(parent.y),
                                coordinate(bus), coordinate(node.y));
  const std::string load = node.share ? fmt::format("load{}", load_class(*node.share)) : "unknown";
  out += fmt::format(R"(<path class="cable {}{}" stroke-width="{}" d="M{} {}H{}"/>)", load, hot ? " hot" : "",
                     coordinate(1.5 + 6 * std::min(1.0, node.share.value_or(0))), coordinate(bus), coordinate(node.y),
                     coordinate(to));
  if (!node.is_leaf) {
    const double x = (bus + to) / 2;
    const std::string speed = node.bytes_per_second > 0 ? shown_rate(node.bytes_per_second) : std::string();
    out += fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="middle">{}</text>)", hot ? "speed hot" : "speed",
                       coordinate(x), coordinate(node.y - 9), speed);
    if (node.share) {
      out +=
          fmt::format(R"(<text class="{}" x="{}" y="{}" text-anchor="middle">{}{}</text>)", hot ? "speed hot" : "speed",
                      coordinate(x), coordinate(node.y + 17), shown_percent(*node.share, 0), hot ? " ▲" : "");
    }
  }
  return out;
}

std::string draw_node(const Drawn& node, double most) {
  const double x = left_of(node);
  const double height = node.is_leaf ? kRow - 5 : 26;
  std::string out =
      fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="4"/>)", node.is_leaf ? "host" : "switch",
                  coordinate(x), coordinate(node.y - height / 2), kBox, coordinate(height));
  const std::size_t letters = 13;
  out += fmt::format(R"(<text class="node" x="{}" y="{}" dy=".35em" text-anchor="middle">{}</text>)",
                     coordinate(x + kBox / 2), coordinate(node.y), escaped(shortened(node.name, letters)));
  if (!node.is_leaf) return out;
  const bool hot = is_bottleneck(node, most);
  std::string text = load_text(node, hot);
  const std::string ranks = node.hosts > 1 ? fmt::format("{} hosts", node.hosts) : ranks_text(node.ranks);
  if (!ranks.empty()) text += fmt::format("{}{}", text.empty() ? "" : " · ", ranks);
  out += fmt::format(R"(<text class="{}" x="{}" y="{}" dy=".35em">{}</text>)", hot ? "speed hot" : "speed",
                     coordinate(x + kBox + 8), coordinate(node.y), text);
  return out;
}

}  // namespace

std::string draw_network(const RunGroup& group, const std::string& id) {
  const Network& network = *group.with_network()->network;
  const std::map<std::string, double> shares = shares_by_node(group);
  const Tree tree(network, shares);
  if (tree.nodes().size() < 2) return {};
  double most = 0;
  for (const Drawn& node : tree.nodes()) most = std::max(most, node.share.value_or(0));
  const double width = 6 + kLevelPitch * tree.depth() + kBox + kTextRoom;
  const bool measured = std::any_of(group.links.begin(), group.links.end(),
                                    [](const LinkLoad& link) { return link.measured_share.has_value(); });
  const char* load = shares.empty() ? "" : measured ? ": measured load" : ": predicted load";
  std::string out =
      fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption>{}{}</figcaption>\n", id, escaped(group.name), load);
  out += begin_svg({id, "The network under " + group.name,
                    "A tree of switches and hosts with the speed and the load of every cable; the tables under Load "
                    "per link have the values.",
                    width, tree.height(), fmt::format("style=\"max-width:{}px\"", coordinate(width * 1.1))});
  for (const Drawn& node : tree.nodes()) {
    if (node.parent >= 0) out += draw_edge(node, tree.nodes()[std::size_t(node.parent)], most);
  }
  for (const Drawn& node : tree.nodes()) out += draw_node(node, most);
  out += "</svg>\n";
  if (tree.hidden() > 0) out += fmt::format("<p class=\"note\">{} more rows are not drawn.</p>\n", tree.hidden());
  return out + "</figure>\n";
}

std::string load_legend() {
  std::string out = R"(<div class="legend">)";
  for (int step = 0; step < 5; ++step) {
    out += fmt::format(
        R"(<span><svg class="swatch" width="26" height="12" viewBox="0 0 26 12" aria-hidden="true"><path class="cable load{}" stroke-width="{}" d="M0 6H26"/></svg>{}–{}&nbsp;%</span>)",
        step, coordinate(1.5 + 6 * (step + 0.5) / 5), 20 * step, 20 * (step + 1));
  }
  return out + "<span class=\"hot\">▲ busiest</span></div>\n";
}

}  // namespace dssync
