// Lowering of a group's average to stages.
#include "dssync/planner/stages.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "dssync/planner/traffic.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

// Slices closer than this are one: far below a single element of any vector.
constexpr double kSameBound = 1e-12;

std::vector<int> positions_of(const Group& group, const Topology& topology) {
  std::vector<int> positions;
  positions.reserve(group.size());
  for (const Rank rank : group) {
    positions.push_back(topology.position_of(rank));
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

std::vector<Rank> in_topology_order(const Group& group, const Topology& topology) {
  std::vector<Rank> members;
  for (const int position : positions_of(group, topology)) {
    members.push_back(topology.rank_at(position));
  }
  return members;
}

// Who holds the sum of which slice after some reduce-scatters. Slices ascend without gaps from 0 to 1.
struct Owner {
  double end = 1;
  int position = 0;
};
using Ownership = std::vector<Owner>;

// A slice on which no part changes its owner: its end, and the owner in each part.
struct Interval {
  double begin = 0;
  double end = 1;
  std::vector<int> owners;
};

// The common refinement of the parts' ownerships.
std::vector<Interval> refine(const std::vector<Ownership>& parts) {
  std::vector<Interval> intervals;
  std::vector<std::size_t> at(parts.size(), 0);
  double begin = 0;
  while (begin < 1 - kSameBound) {
    Interval interval{begin, 1, {}};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      while (parts[i][at[i]].end <= begin + kSameBound) {
        ++at[i];
      }
      interval.end = std::min(interval.end, parts[i][at[i]].end);
      interval.owners.push_back(parts[i][at[i]].position);
    }
    if (interval.end > 1 - kSameBound) {
      interval.end = 1;
    }
    begin = interval.end;
    intervals.push_back(std::move(interval));
  }
  return intervals;
}

// The shares of a slice that members behind cables of the given speeds should own so that the busiest cable is done
// soonest. Scattering and gathering moves 1 + (n - 2) w of the slice over the cable of a member that owns w, and
// `above` w more follows on the levels above. So a member gets its share once its speed is used up by more than the 1
// that it can't avoid.
std::vector<double> shares(const std::vector<double>& speeds, double above) {
  const std::size_t n = speeds.size();
  const auto [least, most] = std::minmax_element(speeds.begin(), speeds.end());
  const double slope = static_cast<double>(n) - 2 + above;
  if (*least == *most || slope <= 0) {
    return std::vector<double>(n, 1.0 / static_cast<double>(n));
  }
  std::vector<double> descending = speeds;
  std::sort(descending.rbegin(), descending.rend());
  double time = 0;
  double sum = 0;
  for (std::size_t active = 0; active < n; ++active) {
    if (active > 0 && time * descending[active] <= 1) {
      break;
    }
    sum += descending[active];
    time = (slope + static_cast<double>(active) + 1) / sum;
  }
  std::vector<double> result;
  for (const double speed : speeds) {
    result.push_back(std::max(0.0, (time * speed - 1) / slope));
  }
  return result;
}

// The shares where nothing is reduced, because all members have the same values: who owns w only sends it to the
// others, so that all are done at the same time if they own in proportion to their speeds.
std::vector<double> proportional(const std::vector<double>& speeds) {
  double sum = 0;
  for (const double speed : speeds) sum += speed;
  std::vector<double> result;
  for (const double speed : speeds) {
    result.push_back(sum > 0 ? speed / sum : 1.0 / static_cast<double>(speeds.size()));
  }
  return result;
}

class HierarchicalLowering {
 public:
  // replicas: null where every worker is one. weighted: owners behind slower cables own less; otherwise all own the
  // same.
  HierarchicalLowering(const Group& group, const Topology& topology, const Replicas* replicas, bool weighted)
      : topology_(topology), replicas_(replicas), members_(positions_of(group, topology)), weighted_(weighted) {}

  Lowering run() {
    if (is_one_replica(0, members_.size())) {
      return {};
    }
    const NodeId top =
        meeting_point(topology_, topology_.host_at(members_.front()), topology_.host_at(members_.back()));
    const int height = reduce(top, 0, members_.size(), 1, true).height;
    Lowering lowering;
    for (int level = 1; level < height; ++level) {
      add_phase(stages_at(scatter_, level), lowering);
    }
    add_phase(top_scatter_, lowering);
    add_phase(top_reduce_, lowering);
    add_phase(as_gathers(top_scatter_), lowering);
    for (int level = height - 1; level > 0; --level) {
      std::vector<Stage> phase = as_gathers(stages_at(scatter_, level));
      for (Stage& stage : as_gathers(stages_at(inside_, level))) phase.push_back(std::move(stage));
      add_phase(phase, lowering);
    }
    align_bounds(lowering);
    return lowering;
  }

  // Whether all shares came out even, as they do behind equal cables. After run().
  bool all_even() const { return all_even_; }

 private:
  struct Part {
    Ownership owners;
    int height = 0;    // levels of reduce-scatter below
    double speed = 0;  // of the cable to the node above; 0 inside a host
  };

  static std::size_t level_index(int level) { return static_cast<std::size_t>(level - 1); }

  static void add_phase(const std::vector<Stage>& phase, Lowering& lowering) {
    if (!phase.empty()) lowering.phases.push_back(phase);
  }

  // Whether members_[first, last), all those below a node, belong to one replica. These stand in the order of the tree.
  bool is_one_replica(std::size_t first, std::size_t last) const {
    const auto number_at = [this](std::size_t i) { return replicas_->number_of(topology_.rank_at(members_[i])); };
    return last - first < 2 || (replicas_ != nullptr && number_at(first) == number_at(last - 1));
  }

  // The child of `node` that a member sits under; kNone where `node` is the member's host.
  NodeId child_towards(NodeId node, int position) const {
    NodeId child = kNone;
    for (NodeId at = topology_.host_at(position); at != node; at = topology_.node(at).parent) {
      child = at;
    }
    return child;
  }

  // Reduces over members_[first, last), all below `node`. `span`: how many blocks are reduced over on the levels above,
  // so that 2 (1 - 1 / span) of what a member owns still has to pass its cable.
  Part reduce(NodeId node, std::size_t first, std::size_t last, double span, bool is_top) {
    std::vector<std::pair<NodeId, std::size_t>> ends;  // each child with members, and where its members end
    for (std::size_t i = first; i < last; ++i) {
      const NodeId child = child_towards(node, members_[i]);
      if (child == kNone || ends.empty() || ends.back().first != child) {
        ends.emplace_back(child, i);
      }
      ends.back().second = i + 1;
    }
    if (ends.size() == 1 && ends.front().first != kNone) {
      const NodeId child = ends.front().first;
      return through_cable(child, reduce(child, first, last, span, is_top));
    }
    if (last - first == 1) {
      return {{{1, members_[first]}}, 0, 0};
    }
    std::vector<Part> parts;
    const bool is_inside = is_one_replica(first, last);
    const double inner_span = is_inside ? span : span * static_cast<double>(ends.size());
    for (const auto& [child, end] : ends) {
      parts.push_back(child == kNone ? Part{{{1, members_[first]}}, 0, 0}
                                     : through_cable(child, reduce(child, first, end, inner_span, false)));
      first = end;
    }
    return is_inside ? divide(std::move(parts)) : combine(std::move(parts), span, is_top);
  }

  Part through_cable(NodeId child, Part part) const {
    const double cable = cable_capacity(topology_, child).bytes_per_second;
    part.speed = part.speed > 0 ? std::min(part.speed, cable) : cable;
    return part;
  }

  // What the parts of one node own together, and their speeds; the same for all unless shares are weighted.
  struct Joint {
    Part whole;
    std::vector<Interval> intervals;
    std::vector<double> speeds;
  };

  Joint join(std::vector<Part> parts) const {
    Joint joint;
    std::vector<Ownership> ownerships;
    for (Part& part : parts) {
      joint.whole.height = std::max(joint.whole.height, part.height + 1);
      ownerships.push_back(std::move(part.owners));
      joint.speeds.push_back(weighted_ ? part.speed : 1);
    }
    joint.intervals = refine(ownerships);
    return joint;
  }

  bool note_even(const std::vector<double>& weights) {
    const bool even = std::equal(weights.begin() + 1, weights.end(), weights.begin());
    all_even_ = all_even_ && even;
    return even;
  }

  // Who owns what where all parts have the same values, and the gathers that this takes in the end.
  Part divide(std::vector<Part> parts) {
    auto [whole, intervals, speeds] = join(std::move(parts));
    const std::vector<double> weights = proportional(speeds);
    note_even(weights);
    const bool balanced = intervals.size() * weights.size() <= 2 * members_.size();
    if (!balanced) {
      cut_at_shares(intervals, weights);
    }
    for (const Interval& interval : intervals) {
      scatter(interval, balanced ? weights : sole_owner(interval, weights), stages_at(inside_, whole.height),
              whole.owners);
    }
    return whole;
  }

  // The stages that join the parts of one node.
  Part combine(std::vector<Part> parts, double span, bool is_top) {
    auto [whole, intervals, speeds] = join(std::move(parts));
    const std::vector<double> weights = shares(speeds, 2 * (1 - 1 / span));
    const bool even = note_even(weights);
    // Every part owns its share of every interval: balanced, and no more slices than workers in a regular tree. In an
    // irregular one they would multiply from level to level; then every part owns one stretch of the vector instead.
    const bool balanced = intervals.size() * weights.size() <= 2 * members_.size();
    // Across three regions or more, a scatter and a gather are two steps, and a ring is four or more.
    const bool is_ring = is_top && even && (weights.size() == 2 || whole.height == 1 || !balanced);
    if (!balanced && !is_ring) {
      cut_at_shares(intervals, weights);
    }
    for (const Interval& interval : intervals) {
      if (is_ring) {
        top_reduce_.push_back({Stage::Kind::kAllReduce, ranks_of(interval.owners), {interval.begin, interval.end}});
      } else {
        scatter(interval, balanced ? weights : sole_owner(interval, weights),
                is_top ? top_scatter_ : stages_at(scatter_, whole.height), whole.owners);
      }
    }
    return whole;
  }

  // Cuts the intervals where the cumulated shares end.
  static void cut_at_shares(std::vector<Interval>& intervals, const std::vector<double>& weights) {
    std::vector<Interval> result;
    std::size_t part = 0;
    double end = weights[0];
    for (Interval interval : intervals) {
      for (; part + 1 < weights.size() && end < interval.end - kSameBound; end += weights[++part]) {
        if (end > interval.begin + kSameBound) {
          result.push_back({interval.begin, end, interval.owners});
          interval.begin = end;
        }
      }
      result.push_back(std::move(interval));
    }
    intervals = std::move(result);
  }

  // All of an interval for the part whose stretch it lies in.
  static std::vector<double> sole_owner(const Interval& interval, const std::vector<double>& weights) {
    const double middle = (interval.begin + interval.end) / 2;
    std::vector<double> sole(weights.size(), 0);
    std::size_t part = 0;
    for (double end = weights[0]; part + 1 < weights.size() && end <= middle; end += weights[++part]) {
    }
    sole[part] = 1;
    return sole;
  }

  static std::vector<Stage>& stages_at(std::vector<std::vector<Stage>>& levels, int level) {
    if (levels.size() <= level_index(level)) {
      levels.resize(level_index(level) + 1);
    }
    return levels[level_index(level)];
  }

  void scatter(const Interval& interval, const std::vector<double>& weights, std::vector<Stage>& phase,
               Ownership& owners) const {
    Stage stage{Stage::Kind::kReduceScatter, ranks_of(interval.owners), {interval.begin}};
    double share = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      share += weights[i];
      const double end =
          i + 1 == weights.size() ? interval.end : interval.begin + share * (interval.end - interval.begin);
      if (end > stage.bounds.back() + kSameBound) {
        owners.push_back({end, interval.owners[i]});
        stage.bounds.push_back(end);
      } else {
        stage.bounds.push_back(stage.bounds.back());
      }
    }
    stage.bounds.back() = interval.end;
    owners.back().end = interval.end;
    phase.push_back(std::move(stage));
  }

  std::vector<Rank> ranks_of(const std::vector<int>& positions) const {
    std::vector<Rank> ranks;
    for (const int position : positions) {
      ranks.push_back(topology_.rank_at(position));
    }
    return ranks;
  }

  // Bounds that mean the same but were reached by different divisions become equal to the last bit, so that whoever
  // turns them into elements rounds them alike in every stage.
  static void align_bounds(Lowering& lowering) {
    std::vector<double> distinct;
    for_each_bound(lowering, [&](double& bound) { distinct.push_back(bound); });
    std::sort(distinct.begin(), distinct.end());
    const auto same = [](double a, double b) { return b - a <= kSameBound; };
    distinct.erase(std::unique(distinct.begin(), distinct.end(), same), distinct.end());
    for_each_bound(lowering, [&](double& bound) {
      bound = *std::prev(std::upper_bound(distinct.begin(), distinct.end(), bound));
    });
  }

  template <typename Function>
  static void for_each_bound(Lowering& lowering, Function function) {
    for (std::vector<Stage>& phase : lowering.phases) {
      for (Stage& stage : phase) {
        std::for_each(stage.bounds.begin(), stage.bounds.end(), function);
      }
    }
  }

  // Each reduce-scatter has its all-gather, in the opposite order.
  static std::vector<Stage> as_gathers(std::vector<Stage> scatters) {
    for (Stage& stage : scatters) stage.kind = Stage::Kind::kAllGather;
    return scatters;
  }

  const Topology& topology_;
  const Replicas* const replicas_;
  const std::vector<int> members_;  // positions, ascending
  const bool weighted_;
  bool all_even_ = true;
  std::vector<std::vector<Stage>> scatter_;  // by level, innermost first
  std::vector<std::vector<Stage>> inside_;   // likewise, inside of replicas: only gathered
  std::vector<Stage> top_scatter_;
  std::vector<Stage> top_reduce_;
};

// Of so many slices of the same size.
std::vector<double> even_bounds(double begin, double end, std::size_t slices) {
  std::vector<double> bounds;
  for (std::size_t i = 0; i < slices; ++i) {
    bounds.push_back(begin + (end - begin) * (static_cast<double>(i) / static_cast<double>(slices)));
  }
  bounds.push_back(end);
  return bounds;
}

// With owners weighed or not, whichever keeps its busiest cable busy for less time.
Lowering better_hierarchy(const Group& group, const Topology& topology, const Replicas* replicas) {
  HierarchicalLowering weighing(group, topology, replicas, true);
  Lowering weighted = weighing.run();
  if (weighing.all_even()) {
    return weighted;
  }
  Lowering even = HierarchicalLowering(group, topology, replicas, false).run();
  const auto busiest = [&](const Lowering& lowering) { return load_of(lowering, topology, 1).busiest(topology); };
  return busiest(weighted) < busiest(even) * (1 - 1e-9) ? weighted : even;
}

}  // namespace

Lowering lower_to_ring(const Group& group, const Topology& topology) {
  if (group.size() < 2) {
    return {};
  }
  return {{{Stage{Stage::Kind::kAllReduce, in_topology_order(group, topology), {0, 1}}}}};
}

Lowering lower_to_servers(const Group& group, const Topology& topology) {
  if (group.size() < 2) {
    return {};
  }
  const std::vector<Rank> members = in_topology_order(group, topology);
  const std::vector<double> bounds = even_bounds(0, 1, members.size());
  return {{{Stage{Stage::Kind::kReduceScatter, members, bounds}}, {Stage{Stage::Kind::kAllGather, members, bounds}}}};
}

Lowering lower_hierarchically(const Group& group, const Topology& topology) {
  return better_hierarchy(group, topology, nullptr);
}

Lowering lower_across(const Group& group, const Topology& topology, const Replicas& replicas) {
  return better_hierarchy(group, topology, &replicas);
}

Lowering encoded(Lowering lowering, const Topology& topology, const Codecs& codecs) {
  if (codecs.is_float32()) return lowering;
  const std::vector<int> levels = levels_of(topology);
  const auto host_of = [&](Rank rank) { return topology.host_at(topology.position_of(rank)); };
  Lowering result;
  result.codec_bytes_per_second = codecs.bytes_per_second();
  for (std::vector<Stage>& phase : lowering.phases) {
    std::vector<Stage> stages;
    std::vector<Stage> gathers;
    for (Stage& stage : phase) {
      const NodeId top = meeting_point(topology, host_of(stage.members.front()), host_of(stage.members.back()));
      stage.codec = codecs.at(levels[static_cast<std::size_t>(top)]);
      const bool is_ring = stage.kind == Stage::Kind::kAllReduce && stage.members.size() > 2;
      if (is_ring && stage.codec != Codec::kFloat32) {
        stage.kind = Stage::Kind::kReduceScatter;
        stage.bounds = even_bounds(stage.bounds.front(), stage.bounds.back(), stage.members.size());
        gathers.push_back(stage);
        gathers.back().kind = Stage::Kind::kAllGather;
      }
      stages.push_back(std::move(stage));
    }
    result.phases.push_back(std::move(stages));
    if (!gathers.empty()) result.phases.push_back(std::move(gathers));
  }
  return result;
}

Lowering lower(const Group& group, const Topology& topology, double bytes, const Codecs& codecs) {
  Lowering ring = encoded(lower_to_ring(group, topology), topology, codecs);
  Lowering hierarchical = encoded(lower_hierarchically(group, topology), topology, codecs);
  const auto ring_time = load_of(ring, topology, bytes).duration(topology);
  const auto hierarchical_time = load_of(hierarchical, topology, bytes).duration(topology);
  return prefers_ring(ring_time, hierarchical_time) ? ring : hierarchical;
}

Lowering lower(const Group& group, const Topology& topology, double bytes, const Replicas& replicas,
               const Codecs& codecs) {
  const bool is_of_single_workers = replicas.count_in(group) == static_cast<int>(group.size());
  return is_of_single_workers ? lower(group, topology, bytes, codecs)
                              : encoded(lower_across(group, topology, replicas), topology, codecs);
}

}  // namespace dssync
