// Loads and times of schedules.
#include "dssync/planner/cost.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "dssync/base/index.h"

namespace dssync {
namespace {

double busiest_seconds(const Lowering& lowering, const Topology& topology) {
  const GroupLoad load = load_of(lowering, topology, 1);
  return load.busiest(topology).count();
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

// Coding and the busiest link take turns with the first and the last pieces.
double beside(double busiest, double coding) {
  return std::min(busiest, coding) * kPiecesPerPhase / kPiecesPerIteration;
}

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

Cost cost_of(const Cycle& cycle, const std::vector<RoundLoad>& distinct, int shards, const Topology& topology) {
  const std::size_t links = topology.links().size();
  Cost cost;
  cost.links.resize(links);
  const auto iterations = static_cast<std::int64_t>(cycle.period(shards));
  for (std::int64_t t = 0; t < iterations; ++t) {
    std::vector<double> bytes_now(links, 0);
    Seconds latency{0};
    double coding = 0;
    double other_phases = 0;
    for (int s = 0; s < shards; ++s) {
      const RoundLoad& load = distinct[cycle.kind_of(cycle.round_at(t, s))];
      latency = std::max(latency, load.latency);
      coding += load.coding.count();
      other_phases = std::max(other_phases, load.other_phases);
      for (const auto& [link, bytes] : load.bytes) {
        bytes_now[index(link)] += bytes;
      }
    }
    double busiest = 0;
    for (std::size_t link = 0; link < links; ++link) {
      busiest = std::max(busiest, bytes_now[link] / topology.links()[link].capacity.bytes_per_second);
      cost.links[link].bytes_per_iteration += bytes_now[link] / static_cast<double>(iterations);
    }
    const double part = 1 / static_cast<double>(iterations);
    cost.seconds_per_iteration += (std::max(busiest, coding) + latency.count()) * part;
    cost.latency_seconds += latency.count() * part;
    cost.coding_seconds += coding * part;
    cost.pipeline_seconds += (pipeline_seconds(busiest, other_phases) + beside(busiest, coding)) * part;
  }
  find_bottleneck(cost, topology);
  return cost;
}

CostBook::Entry& CostBook::entry_of(const Group& group, double bytes) {
  Page& page = pages_[group];
  auto entry = page.entries.find(bytes);
  if (entry == page.entries.end()) {
    entry = page.entries.emplace(bytes, make_entry(group, page, bytes)).first;
  }
  return entry->second;
}

CostBook::Entry CostBook::make_entry(const Group& group, Page& page, double bytes) {
  LoweringBook::Page& ways = lowerings_->page_of(group);
  GroupLoad hierarchy = lowerings_->load_of(ways.hierarchy, codecs_, bytes);
  if (ways.ring) {
    GroupLoad ring = lowerings_->load_of(*ways.ring, codecs_, bytes);
    if (prefers_ring(ring.duration(topology_), hierarchy.duration(topology_))) {
      return {std::move(ring), &*ways.ring, &page.ring};
    }
  }
  return {std::move(hierarchy), &ways.hierarchy, &page.hierarchy};
}

const CostBook::Used& CostBook::used(Entry& entry) const {
  if (!*entry.used) {
    Lowering lowering = lowerings_->lowering_of(*entry.way, codecs_);
    const double others = other_phases(lowering, topology_);
    *entry.used = Used{std::move(lowering), others};
  }
  return **entry.used;
}

// With `bytes` per worker averaged.
RoundLoad CostBook::load_of_round(const Round& round, double bytes) {
  RoundLoad load;
  std::vector<double> sums(topology_.links().size(), 0);
  for (const Group& group : round.groups) {
    if (group.size() > 1) {
      Entry& entry = entry_of(group, bytes);
      for (const auto& [link, link_bytes] : entry.load.bytes) {
        sums[index(link)] += link_bytes;
      }
      load.latency = std::max(load.latency, entry.load.latency);
      load.coding = std::max(load.coding, entry.load.coding);
      load.other_phases = std::max(load.other_phases, used(entry).other_phases);
    }
  }
  load.bytes = loads_from(sums);
  return load;
}

Cost CostBook::cost_of(const Schedule& schedule, int shards, double bytes) {
  const Cycle cycle(schedule);
  std::vector<RoundLoad> loads;
  for (const std::size_t round : cycle.distinct()) {
    loads.push_back(load_of_round(schedule[round], bytes / shards));
  }
  return dssync::cost_of(cycle, loads, shards, topology_);
}

Cost cost_of(const Schedule& schedule, int shards, const Topology& topology, double bytes,
             const std::vector<Group>& replicas, const Codecs& codecs) {
  return CostBook(topology, Replicas(topology, replicas), codecs).cost_of(schedule, shards, bytes);
}

Cost sum_of(const Cost& a, const Cost& b, const Topology& topology) {
  Cost sum = a;
  sum.seconds_per_iteration += b.seconds_per_iteration;
  sum.latency_seconds += b.latency_seconds;
  sum.pipeline_seconds += b.pipeline_seconds;
  sum.coding_seconds += b.coding_seconds;
  for (std::size_t link = 0; link < b.links.size(); ++link) {
    sum.links[link].bytes_per_iteration += b.links[link].bytes_per_iteration;
  }
  find_bottleneck(sum, topology);
  return sum;
}

Cost inside_cost(const std::vector<Group>& replicas, const Topology& topology, double bytes) {
  if (!replicas.empty()) return cost_of({{"inside", replicas}}, 1, topology, bytes);
  Cost nothing;
  nothing.links.resize(topology.links().size());
  return nothing;
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
  cost.coding_seconds = load.coding.count();
  const double busiest = load.busiest(topology).count();
  cost.pipeline_seconds =
      pipeline_seconds(busiest, other_phases(lowering, topology)) + beside(busiest, cost.coding_seconds);
  find_bottleneck(cost, topology);
  return cost;
}

double ring_seconds(const Topology& topology, double bytes) { return exact_seconds(topology, bytes, lower_to_ring); }

double hierarchical_seconds(const Topology& topology, double bytes) {
  return exact_seconds(topology, bytes, lower_hierarchically);
}

}  // namespace dssync
