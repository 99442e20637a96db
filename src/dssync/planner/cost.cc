// Link loads of stages, groups and schedules.
#include "dssync/planner/cost.h"

#include <algorithm>
#include <numeric>

#include "dssync/topology/routes.h"

namespace dssync {
namespace {

std::size_t index(int value) { return static_cast<std::size_t>(value); }

// Adds up what stages put on links. Links may come several times until `finish`.
class LoadMeter {
 public:
  LoadMeter(const Topology& topology, double bytes) : topology_(topology), bytes_(bytes) {}

  // Returns the latency of the stage.
  Seconds add(const Stage& stage) {
    return stage.kind == Stage::Kind::kAllReduce ? add_ring(stage) : add_exchange(stage);
  }

  std::vector<std::pair<LinkId, double>> finish() {
    std::sort(loads_.begin(), loads_.end());
    std::vector<std::pair<LinkId, double>> merged;
    for (const auto& [link, bytes] : loads_) {
      if (merged.empty() || merged.back().first != link) {
        merged.emplace_back(link, 0.0);
      }
      merged.back().second += bytes;
    }
    return merged;
  }

 private:
  NodeId host_of(Rank rank) const { return topology_.host_at(topology_.position_of(rank)); }

  // 2 (k - 1) steps around the ring, each with 1/k of the slice.
  Seconds add_ring(const Stage& stage) {
    const std::size_t k = stage.members.size();
    const double steps = 2.0 * (static_cast<double>(k) - 1);
    const double bytes = steps / static_cast<double>(k) * (stage.bounds[1] - stage.bounds[0]) * bytes_;
    Seconds slowest{0};
    for (std::size_t i = 0; i < k; ++i) {
      Seconds latency{0};
      for (const LinkId link : route(topology_, host_of(stage.members[i]), host_of(stage.members[(i + 1) % k]))) {
        loads_.emplace_back(link, bytes);
        latency += topology_.link(link).latency;
      }
      slowest = std::max(slowest, latency);
    }
    return slowest * steps;
  }

  // Everyone sends to every other member what that one shall own (scatter) or what it owns itself (gather). For a cable
  // with the members below it: all of them send what is owned beyond it, all others send what is owned below it.
  Seconds add_exchange(const Stage& stage) {
    struct Below {
      NodeId node;
      double members;
      double owned;
    };
    const NodeId top = meeting_point(topology_, host_of(stage.members.front()), host_of(stage.members.back()));
    std::vector<Below> below;
    Seconds longest{0};
    Seconds second{0};
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      Seconds latency{0};
      for (NodeId at = host_of(stage.members[i]); at != top; at = topology_.node(at).parent) {
        below.push_back({at, 1, stage.bounds[i + 1] - stage.bounds[i]});
        latency += topology_.link(topology_.node(at).up).latency;
      }
      second = std::max(second, std::min(longest, latency));
      longest = std::max(longest, latency);
    }
    std::stable_sort(below.begin(), below.end(), [](const Below& a, const Below& b) { return a.node < b.node; });
    const auto all = static_cast<double>(stage.members.size());
    const double slice = stage.bounds.back() - stage.bounds.front();
    for (std::size_t i = 0; i < below.size();) {
      Below sum{below[i].node, 0, 0};
      for (; i < below.size() && below[i].node == sum.node; ++i) {
        sum.members += below[i].members;
        sum.owned += below[i].owned;
      }
      double out = sum.members * (slice - sum.owned) * bytes_;
      double in = (all - sum.members) * sum.owned * bytes_;
      if (stage.kind == Stage::Kind::kAllGather) {
        std::swap(out, in);
      }
      loads_.emplace_back(topology_.node(sum.node).up, out);
      loads_.emplace_back(topology_.node(sum.node).down, in);
    }
    return longest + second;
  }

  const Topology& topology_;
  const double bytes_;
  std::vector<std::pair<LinkId, double>> loads_;
};

// What one round puts on the network, with `bytes` per worker averaged.
struct RoundLoad {
  std::vector<double> bytes;  // by link
  Seconds latency{0};
  double other_phases = 0;  // of the worst group, see below
};

double busiest_seconds(const Lowering& lowering, const Topology& topology) {
  const GroupLoad load = load_of(lowering, topology, 1);
  return (load.duration(topology) - load.latency).count();
}

// The time of all phases but the slowest, in relation to the busiest link's for all of them together.
double other_phases(const Lowering& lowering, const Topology& topology) {
  if (lowering.phases.size() < 2) return 0;
  double sum = 0;
  double slowest = 0;
  for (const std::vector<Stage>& phase : lowering.phases) {
    const double seconds = busiest_seconds({{phase}}, topology);
    sum += seconds;
    slowest = std::max(slowest, seconds);
  }
  const double together = busiest_seconds(lowering, topology);
  return together > 0 ? (sum - slowest) / together : 0;
}

// A piece takes 1/kPiecesPerIteration of the busiest link's time, and its share of that in the other phases.
double pipeline_seconds(double busiest, double other_phases) {
  return busiest * other_phases * kPiecesPerPhase / kPiecesPerIteration;
}

RoundLoad load_of_round(const Round& round, const Topology& topology, double bytes) {
  RoundLoad load;
  load.bytes.assign(topology.links().size(), 0);
  for (const Group& group : round.groups) {
    if (group.size() > 1) {
      const Lowering lowering = lower(group, topology, bytes);
      const GroupLoad part = load_of(lowering, topology, bytes);
      for (const auto& [link, link_bytes] : part.bytes) {
        load.bytes[index(link)] += link_bytes;
      }
      load.latency = std::max(load.latency, part.latency);
      load.other_phases = std::max(load.other_phases, other_phases(lowering, topology));
    }
  }
  return load;
}

// The loads of all rounds, each distinct round worked out once.
class CycleLoads {
 public:
  CycleLoads(const Schedule& schedule, const Topology& topology, double bytes) {
    for (std::size_t t = 0; t < schedule.size(); ++t) {
      std::size_t earlier = 0;
      while (schedule[earlier].groups != schedule[t].groups) {
        ++earlier;
      }
      kind_.push_back(earlier == t ? distinct_.size() : kind_[earlier]);
      if (earlier == t) {
        distinct_.push_back(load_of_round(schedule[t], topology, bytes));
      }
    }
  }

  const RoundLoad& at(std::size_t t) const { return distinct_[kind_[t % kind_.size()]]; }

 private:
  std::vector<RoundLoad> distinct_;
  std::vector<std::size_t> kind_;
};

// From the bytes of all links.
void find_bottleneck(Cost& cost, const Topology& topology) {
  double most = 0;
  for (std::size_t link = 0; link < cost.links.size(); ++link) {
    LinkUse& use = cost.links[link];
    use.seconds = use.bytes_per_iteration / topology.links()[link].capacity.bytes_per_second;
    if (use.seconds > most * (1 + 1e-9)) {
      most = use.seconds;
      cost.bottleneck = static_cast<LinkId>(link);
    }
  }
}

double exact_seconds(const Topology& topology, double bytes, Lowering (*lowering)(const Group&, const Topology&)) {
  Group everyone(index(topology.workers()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return load_of(lowering(everyone, topology), topology, bytes).duration(topology).count();
}

}  // namespace

Seconds GroupLoad::duration(const Topology& topology) const {
  double busiest = 0;
  for (const auto& [link, link_bytes] : bytes) {
    busiest = std::max(busiest, link_bytes / topology.link(link).capacity.bytes_per_second);
  }
  return Seconds(busiest) + latency;
}

GroupLoad load_of(const Lowering& lowering, const Topology& topology, double bytes) {
  LoadMeter meter(topology, bytes);
  GroupLoad load;
  for (const std::vector<Stage>& phase : lowering.phases) {
    Seconds slowest{0};
    for (const Stage& stage : phase) {
      slowest = std::max(slowest, meter.add(stage));
    }
    load.latency += slowest;
  }
  load.bytes = meter.finish();
  return load;
}

Cost cost_of(const Schedule& schedule, int shards, const Topology& topology, double bytes) {
  const CycleLoads loads(schedule, topology, bytes / shards);
  const std::size_t length = schedule.size();
  const std::size_t links = topology.links().size();
  Cost cost;
  cost.links.resize(links);
  // With a multiple of T shards all iterations are alike.
  const std::size_t iterations = index(shards) % length == 0 ? 1 : length;
  for (std::size_t t = 0; t < iterations; ++t) {
    std::vector<double> bytes_now(links, 0);
    Seconds latency{0};
    double other_phases = 0;
    for (std::size_t s = 0; s < index(shards); ++s) {
      const RoundLoad& load = loads.at(t + s);
      latency = std::max(latency, load.latency);
      other_phases = std::max(other_phases, load.other_phases);
      for (std::size_t link = 0; link < links; ++link) {
        bytes_now[link] += load.bytes[link];
      }
    }
    double busiest = 0;
    for (std::size_t link = 0; link < links; ++link) {
      busiest = std::max(busiest, bytes_now[link] / topology.links()[link].capacity.bytes_per_second);
      cost.links[link].bytes_per_iteration += bytes_now[link] / static_cast<double>(iterations);
    }
    cost.seconds_per_iteration += (busiest + latency.count()) / static_cast<double>(iterations);
    cost.latency_seconds += latency.count() / static_cast<double>(iterations);
    cost.pipeline_seconds += pipeline_seconds(busiest, other_phases) / static_cast<double>(iterations);
  }
  find_bottleneck(cost, topology);
  return cost;
}

Cost cost_of(const Lowering& lowering, const Topology& topology, double bytes) {
  const GroupLoad load = load_of(lowering, topology, bytes);
  Cost cost;
  cost.links.resize(topology.links().size());
  for (const auto& [link, link_bytes] : load.bytes) {
    cost.links[index(link)].bytes_per_iteration = link_bytes;
  }
  cost.seconds_per_iteration = load.duration(topology).count();
  cost.latency_seconds = load.latency.count();
  cost.pipeline_seconds =
      pipeline_seconds(cost.seconds_per_iteration - cost.latency_seconds, other_phases(lowering, topology));
  find_bottleneck(cost, topology);
  return cost;
}

double ring_seconds(const Topology& topology, double bytes) { return exact_seconds(topology, bytes, lower_to_ring); }

double hierarchical_seconds(const Topology& topology, double bytes) {
  return exact_seconds(topology, bytes, lower_hierarchically);
}

}  // namespace dssync
