#include <algorithm>
#include <string>
#include <utility>

#include "text/name_list.h"
#include "text/round_matrix.h"

namespace dssync::cli {
namespace {

std::vector<int> depths_of(const Topology& topology) {
  std::vector<int> result(topology.nodes().size(), 0);
  for (std::size_t i = 1; i < result.size(); ++i) {
    result[i] = result[static_cast<std::size_t>(topology.nodes()[i].parent)] + 1;
  }
  return result;
}

// The depth of the smallest region that holds the whole group.
int depth_of_group(const Group& group, const Topology& topology, const std::vector<int>& depths) {
  int low = topology.position_of(group.front());
  int high = low;
  for (const Rank rank : group) {
    low = std::min(low, topology.position_of(rank));
    high = std::max(high, topology.position_of(rank));
  }
  NodeId node = topology.host_at(low);
  while (topology.node(node).first + topology.node(node).count <= high) node = topology.node(node).parent;
  return depths[static_cast<std::size_t>(node)];
}

// Of each depth: the share of the workers whose group spans a region of that depth or a larger one.
std::vector<double> reach_of(const Round& round, const Topology& topology, const std::vector<int>& depths) {
  const int deepest = *std::max_element(depths.begin(), depths.end());
  std::vector<double> share(static_cast<std::size_t>(deepest) + 1, 0);
  for (const Group& group : round.groups) {
    if (group.size() == 1) continue;
    const int depth = depth_of_group(group, topology, depths);
    for (std::size_t d = static_cast<std::size_t>(depth); d < share.size(); ++d)
      share[d] += static_cast<double>(group.size());
  }
  for (double& value : share) value /= topology.workers();
  return share;
}

Matrix::Cell share_cell(double share, const Style& style) {
  if (share == 0) return {style.glyphs().alone, Tint::kDim};
  if (share >= 1) return {style.glyphs().full, Tint::kCyan};
  return {share >= 0.5 ? style.glyphs().more : style.glyphs().less, Tint::kCyan};
}

std::string level_label(int depth, const Topology& topology, const std::vector<int>& depths, const Style& style) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    if (depths[i] == depth) names.push_back(topology.nodes()[i].name);
  }
  const bool one = names.size() == 1;
  return (one ? "across " : "within one of ") + list_names(names, 34, style);
}

}  // namespace

Matrix level_matrix(const std::vector<const Round*>& rounds, const Topology& topology, const Style& style) {
  const std::vector<int> depths = depths_of(topology);
  std::vector<std::vector<double>> reach;
  for (const Round* round : rounds) reach.push_back(reach_of(*round, topology, depths));
  Matrix matrix;
  for (std::size_t depth = 0; depth < reach.front().size(); ++depth) {
    const bool used = std::any_of(reach.begin(), reach.end(), [&](const auto& share) {
      return share[depth] > (depth == 0 ? 0 : share[depth - 1]);
    });
    if (!used) continue;  // no group ends at this level
    Matrix::Row row{level_label(static_cast<int>(depth), topology, depths, style), {}, false};
    for (const auto& share : reach) row.cells.push_back(share_cell(share[depth], style));
    matrix.rows.push_back(std::move(row));
  }
  return matrix;
}

}  // namespace dssync::cli
