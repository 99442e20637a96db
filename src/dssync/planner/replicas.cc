#include "dssync/planner/replicas.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"

namespace dssync {
namespace {

// By their first positions, with the ranks of each in the order of the tree.
std::vector<Group> in_order_of_tree(std::vector<Group> groups, const Topology& topology) {
  const auto before = [&](Rank a, Rank b) { return topology.position_of(a) < topology.position_of(b); };
  for (Group& group : groups) std::sort(group.begin(), group.end(), before);
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) { return before(a[0], b[0]); });
  return groups;
}

// REQUIRES: in the order of the tree.
void check_place(const Group& group, const Topology& topology) {
  if (group.size() == 1) return;
  const int first = topology.position_of(group.front());
  const int last = topology.position_of(group.back());
  NodeId place = topology.host_at(first);
  while (place != kNone && topology.node(place).first + topology.node(place).count <= last) {
    place = topology.node(place).parent;
  }
  const bool is_place = place != kNone && topology.node(place).first == first &&
                        topology.node(place).count == static_cast<int>(group.size());
  if (is_place) return;
  throw InputError(fmt::format("ranks {} to {} cannot be one replica: expected all workers below one host or switch",
                               *std::min_element(group.begin(), group.end()),
                               *std::max_element(group.begin(), group.end())));
}

void check_ranks(const std::vector<Group>& groups, int workers) {
  std::set<Rank> seen;
  for (const Group& group : groups) {
    if (group.empty()) throw InputError("a replica needs at least one worker");
    for (const Rank rank : group) {
      if (rank >= 0 && rank < workers && seen.insert(rank).second) continue;
      throw InputError(fmt::format("rank {} is in two replicas, or there are only ranks 0 to {}", rank, workers - 1));
    }
  }
  if (static_cast<int>(seen.size()) == workers) return;
  throw InputError(fmt::format("replicas have {} of {} workers", seen.size(), workers));
}

}  // namespace

Replicas::Replicas(const Topology& topology, const std::vector<Group>& groups) : number_of_(index(topology.workers())) {
  if (groups.empty()) {
    for (int position = 0; position < topology.workers(); ++position) ranks_.push_back({topology.rank_at(position)});
  } else {
    check_ranks(groups, topology.workers());
    ranks_ = in_order_of_tree(groups, topology);
  }
  for (std::size_t number = 0; number < ranks_.size(); ++number) {
    check_place(ranks_[number], topology);
    for (const Rank rank : ranks_[number]) number_of_[index(rank)] = static_cast<int>(number);
    std::sort(ranks_[number].begin(), ranks_[number].end());
  }
}

Group Replicas::ranks_of(const std::vector<int>& numbers) const {
  Group group;
  for (const int number : numbers) {
    const Group& ranks = ranks_[index(number)];
    group.insert(group.end(), ranks.begin(), ranks.end());
  }
  std::sort(group.begin(), group.end());
  return group;
}

int Replicas::count_in(const Group& group) const {
  return static_cast<int>(std::count_if(group.begin(), group.end(),
                                        [this](Rank rank) { return ranks_[index(number_of(rank))].front() == rank; }));
}

Replicas::Weighing Replicas::weighing_of(const Group& group, Rank rank) const {
  const auto size_of = [this](Rank member) { return static_cast<int>(ranks_[index(number_of(member))].size()); };
  int common = 0;
  for (const Rank member : group) common = std::gcd(common, size_of(member));
  return {size_of(rank) / common, static_cast<int>(group.size()) / common};
}

std::vector<Region> find_regions(const Topology& topology, const Replicas& replicas) {
  const std::vector<Region> all = find_regions(topology);
  const auto number_at = [&](int position) { return replicas.number_of(topology.rank_at(position)); };
  std::vector<Region> kept;
  std::vector<int> place(all.size(), kNone);  // in `kept`
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::set<int> members;
    for (const int position : all[r].members) members.insert(number_at(position));
    const int parent = all[r].parent == kNone ? kNone : place[index(all[r].parent)];
    if (members.size() == 1 && r > 0) {  // inside a replica, which is a part of the first region around it
      const bool is_part = parent != kNone && kept[index(parent)].members.size() > 1;
      if (is_part) kept[index(parent)].loose.push_back(*members.begin());
      continue;
    }
    place[r] = static_cast<int>(kept.size());
    if (parent != kNone) kept[index(parent)].children.push_back(place[r]);
    Region region{all[r].name, parent, all[r].depth, {}, {}, {members.begin(), members.end()}};
    for (const int position : all[r].loose) region.loose.push_back(number_at(position));
    if (members.size() == 1) region.loose = region.members;
    kept.push_back(std::move(region));
  }
  return kept;
}

}  // namespace dssync
