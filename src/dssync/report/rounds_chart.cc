// The rounds of a plan: a dot for every worker, one line for the workers below each switch, a letter and a colour for
// each group. Of more than 64 workers a dot stands for a host, of more than 64 hosts for the hosts of a switch.
#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "dssync/report/markup.h"
#include "dssync/report/network_chart.h"

namespace dssync {
namespace {

constexpr std::size_t kMostDots = 64;
constexpr std::size_t kMostRounds = 24;
constexpr std::size_t kLine = 16;  // dots
constexpr double kDotPitch = 20;
constexpr double kGutter = 62;  // for the names of switches

// What a dot stands for.
using Dot = std::vector<int>;  // ranks

struct Line {
  std::string name;
  std::vector<Dot> dots;
};

std::vector<Line> lines_of(const Network& network, int workers) {
  std::size_t hosts = 0;
  for (const NetworkNode& node : network.nodes) hosts += node.is_host ? 1 : 0;
  const bool by_worker = static_cast<std::size_t>(workers) <= kMostDots;
  const bool by_host = !by_worker && hosts <= kMostDots;
  std::vector<Line> result;
  std::map<int, std::size_t> place;  // of a switch
  for (const NetworkNode& node : network.nodes) {
    if (!node.is_host || node.ranks.empty()) continue;
    const auto [entry, is_new] = place.emplace(node.parent, result.size());
    if (is_new) result.push_back({node.parent >= 0 ? network.nodes[std::size_t(node.parent)].name : std::string(), {}});
    std::vector<Dot>& dots = result[entry->second].dots;
    if (by_worker) {
      for (const int rank : node.ranks) dots.push_back({rank});
    } else if (by_host || dots.empty()) {
      dots.push_back(node.ranks);
    } else {
      dots.front().insert(dots.front().end(), node.ranks.begin(), node.ranks.end());
    }
  }
  if (by_worker || by_host || result.size() <= kLine) return result;
  Line all;  // a dot per switch needs no line of its own
  for (Line& line : result) all.dots.push_back(std::move(line.dots.front()));
  return {all};
}

// The group of each rank: -1 alone, otherwise counted from 0 among the groups of more than one.
std::vector<int> groups_of(const PlannedRound& round, int workers) {
  std::vector<int> result(static_cast<std::size_t>(workers), -1);
  int next = 0;
  for (const std::vector<int>& group : round.groups) {
    if (group.size() < 2) continue;
    for (const int rank : group) {
      if (rank < workers) result[static_cast<std::size_t>(rank)] = next;
    }
    ++next;
  }
  return result;
}

std::string letter_of(int group) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const auto place = static_cast<std::size_t>(group);
  return place < kLetters.size() ? std::string(1, kLetters[place]) : fmt::format("{}", group + 1);
}

std::string draw_dot(const Dot& dot, const std::vector<int>& groups, double x, double y) {
  std::vector<int> found;
  for (const int rank : dot) {
    const int group = static_cast<std::size_t>(rank) < groups.size() ? groups[static_cast<std::size_t>(rank)] : -1;
    if (std::find(found.begin(), found.end(), group) == found.end()) found.push_back(group);
  }
  const bool is_mixed = found.size() > 1;
  const int group = is_mixed || found.empty() ? -1 : found.front();
  const std::string text = is_mixed ? fmt::format("{}*", found.size()) : group < 0 ? std::string() : letter_of(group);
  return fmt::format(
      R"(<circle class="{}" cx="{}" cy="{}" r="8"/><text class="{}" x="{}" y="{}" dy=".36em" text-anchor="middle">{}</text>)",
      group < 0 ? std::string(is_mixed ? "dot mixed" : "dot alone") : fmt::format("dot g{}", group % 8), coordinate(x),
      coordinate(y), group < 0 ? "dot" : "dot in", coordinate(x), coordinate(y), text);
}

struct Panel {
  const PlannedRound* round = nullptr;
  std::vector<std::size_t> places;  // in the cycle, from 1
};

std::vector<Panel> different_rounds(const Network& network) {
  std::map<std::vector<std::vector<int>>, std::size_t> seen;
  std::vector<Panel> result;
  for (std::size_t i = 0; i < network.rounds.size(); ++i) {
    const auto [entry, is_new] = seen.emplace(network.rounds[i].groups, result.size());
    if (is_new) result.push_back({&network.rounds[i], {}});
    result[entry->second].places.push_back(i + 1);
  }
  return result;
}

// {1, 2, 3, 7} -> "1–3, 7".
std::string places_text(const std::vector<std::size_t>& places) {
  std::string result;
  for (std::size_t i = 0; i < places.size();) {
    std::size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    if (!result.empty()) result += ", ";
    result += end - i > 2 ? fmt::format("{}–{}", places[i], places[end - 1]) : fmt::format("{}", places[i]);
    i = end - i > 2 ? end : i + 1;
  }
  return result;
}

std::string draw_panel(const Panel& panel, const std::vector<Line>& lines, int workers, const std::string& id) {
  const std::vector<int> groups = groups_of(*panel.round, workers);
  double y = 14;
  double width = 0;
  std::string dots;
  for (const Line& line : lines) {
    dots += fmt::format(R"(<text class="speed" x="{}" y="{}" dy=".36em" text-anchor="end">{}</text>)", kGutter - 8,
                        coordinate(y), escaped(shortened(line.name, 10)));
    for (std::size_t i = 0; i < line.dots.size(); ++i) {
      if (i > 0 && i % kLine == 0) y += kDotPitch;
      const double x = kGutter + 10 + kDotPitch * static_cast<double>(i % kLine);
      width = std::max(width, x + 12);
      dots += draw_dot(line.dots[i], groups, x, y);
    }
    y += kDotPitch + 3;
  }
  y -= kDotPitch / 2;
  const std::string name = fmt::format("round{} {}", panel.places.size() > 1 ? "s" : "", places_text(panel.places));
  return fmt::format("<figure class=\"round\"><figcaption><b>{}</b><br>{}</figcaption>{}{}</svg></figure>\n", name,
                     escaped(panel.round->label),
                     begin_svg({id, name, panel.round->label, width, y,
                                fmt::format("width=\"{}\" height=\"{}\"", coordinate(width), coordinate(y))}),
                     dots);
}

}  // namespace

std::string draw_rounds(const RunGroup& group, const std::string& id) {
  const TrainingRun& run = *group.with_network();
  const std::vector<Line> lines = lines_of(*run.network, run.workers);
  const std::vector<Panel> panels = different_rounds(*run.network);
  if (lines.empty() || panels.empty()) return {};
  const std::size_t shown = std::min(panels.size(), kMostRounds);
  std::string out = "<div class=\"rounds\">\n";
  for (std::size_t i = 0; i < shown; ++i)
    out += draw_panel(panels[i], lines, run.workers, fmt::format("{}-{}", id, i + 1));
  out += "</div>\n";
  if (static_cast<std::size_t>(run.workers) > kMostDots) {
    out +=
        "<p class=\"note\">A circle stands for several workers, below one host or switch; 2* means that they are in "
        "two "
        "groups.</p>\n";
  }
  if (panels.size() > shown)
    out += fmt::format("<p class=\"note\">and {} more different rounds.</p>\n", panels.size() - shown);
  return out;
}

}  // namespace dssync
