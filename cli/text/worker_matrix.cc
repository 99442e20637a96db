#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "text/name_list.h"
#include "text/round_matrix.h"

namespace dssync::cli {
namespace {

constexpr std::size_t kMaxRows = 32;        // more are not drawn
constexpr std::size_t kMaxSingleRows = 16;  // up to here each worker has its own row
constexpr Tint kGroupTints[] = {Tint::kCyan, Tint::kYellow, Tint::kGreen, Tint::kMagenta, Tint::kBlue, Tint::kRed};

// Of each worker, by position: the number of its group in this round in the order of the tree, -1 for a group of one.
std::vector<int> group_numbers(const Round& round, const Topology& topology) {
  std::vector<int> group_of(static_cast<std::size_t>(topology.workers()), -1);
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    if (round.groups[g].size() == 1) continue;
    for (const Rank rank : round.groups[g]) {
      group_of[static_cast<std::size_t>(topology.position_of(rank))] = static_cast<int>(g);
    }
  }
  std::map<int, int> renumbered;
  for (int& group : group_of) {
    if (group >= 0) group = renumbered.emplace(group, static_cast<int>(renumbered.size())).first->second;
  }
  return group_of;
}

Matrix::Cell group_cell(int group, const Style& style) {
  if (group < 0) return {style.glyphs().alone, Tint::kDim};
  const std::size_t number = static_cast<std::size_t>(group);
  const char letter = static_cast<char>('A' + number % 26);
  const Tint tint = kGroupTints[number % std::size(kGroupTints)];
  return {number < 26 ? std::string(1, letter) : fmt::format("{}{}", letter, number / 26), tint};
}

// Workers [first, last) by position whose cells are the same in every round.
struct Band {
  int first = 0;
  int last = 0;
};

NodeId switch_at(int position, const Topology& topology) { return topology.node(topology.host_at(position)).parent; }

std::vector<Band> bands_of(const std::vector<std::vector<int>>& groups, const Topology& topology) {
  const bool single = static_cast<std::size_t>(topology.workers()) <= kMaxSingleRows;
  std::vector<Band> result;
  for (int p = 0; p < topology.workers(); ++p) {
    const auto same = [&](const std::vector<int>& of) {
      return of[static_cast<std::size_t>(p)] == of[static_cast<std::size_t>(p - 1)];
    };
    const bool joins = !single && p > 0 && switch_at(p, topology) == switch_at(p - 1, topology) &&
                       std::all_of(groups.begin(), groups.end(), same);
    if (joins) {
      result.back().last = p + 1;
    } else {
      result.push_back({p, p + 1});
    }
  }
  return result;
}

std::string band_label(const Band& band, bool first_of_switch, std::size_t switch_columns, const Topology& topology,
                       const Style& style) {
  std::vector<std::string> names;
  for (int p = band.first; p < band.last; ++p) names.push_back(topology.worker_name(topology.rank_at(p)));
  const std::string name = first_of_switch ? printable(topology.node(switch_at(band.first, topology)).name) : "";
  return pad_right(clip(name, switch_columns, style), switch_columns) + "  " + list_names(names, 24, style);
}

}  // namespace

Matrix worker_matrix(const std::vector<const Round*>& rounds, const Topology& topology, const Style& style) {
  std::vector<std::vector<int>> groups;
  for (const Round* round : rounds) groups.push_back(group_numbers(*round, topology));
  const std::vector<Band> bands = bands_of(groups, topology);
  Matrix matrix;
  if (bands.size() > kMaxRows) return matrix;
  std::size_t switch_columns = 0;
  for (const Band& band : bands) {
    switch_columns = std::max(switch_columns, width(topology.node(switch_at(band.first, topology)).name));
  }
  switch_columns = std::min<std::size_t>(switch_columns, 20);
  const bool one_row_each = std::adjacent_find(bands.begin(), bands.end(), [&](const Band& a, const Band& b) {
                              return switch_at(a.first, topology) == switch_at(b.first, topology);
                            }) == bands.end();
  NodeId previous = kNone;
  for (const Band& band : bands) {
    const NodeId current = switch_at(band.first, topology);
    Matrix::Row row{band_label(band, current != previous, switch_columns, topology, style), {}, false};
    row.opens_block = previous != kNone && current != previous && !one_row_each;
    for (const auto& of : groups) row.cells.push_back(group_cell(of[static_cast<std::size_t>(band.first)], style));
    matrix.rows.push_back(std::move(row));
    previous = current;
  }
  return matrix;
}

}  // namespace dssync::cli
