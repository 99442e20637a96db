#include "dssync/planner/lowering_book.h"

#include <algorithm>
#include <map>
#include <utility>

#include "dssync/base/index.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

constexpr Codec kAnyCodec = Codec::kInt8;

}  // namespace

LoweringBook::LoweringBook(const Topology& topology, Replicas replicas)
    : topology_(topology),
      replicas_(std::move(replicas)),
      node_levels_(dssync::levels_of(topology)),
      sums_(topology.links().size(), 0) {}

LoweringBook::Page& LoweringBook::page_of(const Group& group) {
  const auto [page, is_new] = pages_.try_emplace(group);
  if (is_new) {
    const bool is_of_single_workers = replicas_.count_in(group) == static_cast<int>(group.size());
    if (is_of_single_workers) page->second.ring = Way{lower_to_ring(group, topology_)};
    page->second.hierarchy.lowering =
        is_of_single_workers ? lower_hierarchically(group, topology_) : lower_across(group, topology_, replicas_);
  }
  return page->second;
}

std::vector<LoweringBook::LevelLoad> LoweringBook::levels_of(const Lowering& lowering) const {
  std::map<int, Lowering> parts;
  for (const std::vector<Stage>& phase : lowering.phases) {
    std::map<int, std::vector<Stage>> by_level;
    for (const Stage& stage : phase) {
      const auto host_of = [&](Rank rank) { return topology_.host_at(topology_.position_of(rank)); };
      const NodeId top = meeting_point(topology_, host_of(stage.members.front()), host_of(stage.members.back()));
      by_level[node_levels_[index(top)]].push_back(stage);
    }
    for (auto& [level, stages] : by_level) parts[level].phases.push_back(std::move(stages));
  }
  std::vector<LevelLoad> result;
  for (const auto& [level, part] : parts) {
    LevelLoad load{level, dssync::load_of(part, topology_, 1), {}};
    load.encoded = dssync::load_of(encoded(part, topology_, Codecs(kAnyCodec, 1)), topology_, 1);
    for (auto& [link, bytes] : load.encoded.bytes) bytes /= wire_share(kAnyCodec);
    result.push_back(std::move(load));
  }
  return result;
}

GroupLoad LoweringBook::load_of(Way& way, const Codecs& codecs, double bytes) {
  if (codecs.is_float32()) return dssync::load_of(way.lowering, topology_, bytes);
  if (way.levels.empty()) way.levels = levels_of(way.lowering);
  GroupLoad sum;
  std::vector<LinkId> links;
  for (const LevelLoad& level : way.levels) {
    const Codec codec = codecs.at(level.level);
    const GroupLoad& load = codec == Codec::kFloat32 ? level.plain : level.encoded;
    for (const auto& [link, share] : load.bytes) {
      if (sums_[index(link)] == 0) links.push_back(link);
      sums_[index(link)] += share * wire_share(codec) * bytes;
    }
    sum.latency += load.latency;
    sum.coding += load.coding * (bytes / codecs.bytes_per_second());
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  for (const LinkId link : links) sum.bytes.emplace_back(link, std::exchange(sums_[index(link)], 0));
  return sum;
}

}  // namespace dssync
