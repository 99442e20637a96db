// What a schedule costs on a network: the mean load of every link, and the time of an iteration that follows. Pure;
// thread-safe.
//
// An iteration takes as long as its busiest link (bytes / capacity, both directions apart) plus the latency of its
// longest chain of steps. Workers encode and decode beside it: where that takes longer, an iteration takes as long as
// that. With T shards every iteration touches all rounds, so a link's load is its mean over the cycle
// instead of its peak. That is what links can do at best, and what plans are compared by; apart from it a cost says
// what filling and draining the pipeline adds where averages go through several phases.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dssync/planner/codecs.h"
#include "dssync/planner/lowering_book.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/planner/stages.h"
#include "dssync/planner/traffic.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct LinkUse {
  double bytes_per_iteration = 0;
  double seconds = 0;
};

// Whoever carries out an average of several phases cuts an iteration's averages into about so many pieces, and has two
// of them under way in a phase, so that no link waits for the next one.
inline constexpr double kPiecesPerIteration = 12;
inline constexpr double kPiecesPerPhase = 2;

struct Cost {
  double seconds_per_iteration = 0;
  double latency_seconds = 0;   // the part of it that is latency
  double pipeline_seconds = 0;  // not a part of it: until the first piece has reached its slowest phase, and from there
  double coding_seconds = 0;    // of a worker, beside the busiest link's time
  LinkId bottleneck = kNone;    // the busiest link; kNone where no link is used
  std::vector<LinkUse> links;   // by LinkId, means over the cycle
};

// What a round puts on the network for each shard that uses it.
struct RoundLoad {
  LinkLoads bytes;
  Seconds latency{0};
  Seconds coding{0};  // of the worker that codes most
  // Of the worst group: the time of all phases but the slowest, in relation to the busiest link's for all together.
  double other_phases = 0;
};

// From the loads of the distinct rounds, in the order of cycle.distinct(). REQUIRES: 1 <= shards.
Cost cost_of(const Cycle& cycle, const std::vector<RoundLoad>& distinct, int shards, const Topology& topology);

// The costs of many schedules on one network, in the same codecs. What a group puts on it is worked out once. Not
// thread-safe.
class CostBook {
 public:
  // The topology must outlive the book. Groups are unions of replicas, and their values travel in these codecs.
  explicit CostBook(const Topology& topology) : CostBook(topology, Replicas(topology)) {}
  CostBook(const Topology& topology, Replicas replicas, Codecs codecs = {})
      : CostBook(topology, std::make_shared<LoweringBook>(topology, std::move(replicas)), std::move(codecs)) {}
  // Several may share the lowerings, which are of the same topology.
  CostBook(const Topology& topology, std::shared_ptr<LoweringBook> lowerings, Codecs codecs)
      : topology_(topology), lowerings_(std::move(lowerings)), codecs_(std::move(codecs)) {}

  // With every group lowered as suits the network best. REQUIRES: schedule not empty; 1 <= shards.
  Cost cost_of(const Schedule& schedule, int shards, double bytes);

  // Of one average of the group, lowered as suits the network best.
  const GroupLoad& load_of(const Group& group, double bytes) { return entry_of(group, bytes).load; }

  // How that average is carried out. The reference stays valid as long as the book.
  const Lowering& lowering_of(const Group& group, double bytes) { return used(entry_of(group, bytes)).lowering; }

 private:
  // One of the ways to average a group, once it is used.
  struct Used {
    Lowering lowering;
    double other_phases = 0;  // as in RoundLoad
  };
  struct Entry {
    GroupLoad load;
    LoweringBook::Way* way = nullptr;
    std::optional<Used>* used = nullptr;
  };
  struct Page {
    std::optional<Used> ring;
    std::optional<Used> hierarchy;
    std::map<double, Entry> entries;  // by bytes
  };

  Entry& entry_of(const Group& group, double bytes);
  Entry make_entry(const Group& group, Page& page, double bytes);
  const Used& used(Entry& entry) const;
  RoundLoad load_of_round(const Round& round, double bytes);

  const Topology& topology_;
  const std::shared_ptr<LoweringBook> lowerings_;
  const Codecs codecs_;
  std::map<Group, Page> pages_;
};

// The same for one schedule, of these replicas; none: every worker is one.
Cost cost_of(const Schedule& schedule, int shards, const Topology& topology, double bytes,
             const std::vector<Group>& replicas = {}, const Codecs& codecs = {});

// Of both, one after the other, in every iteration.
Cost sum_of(const Cost& a, const Cost& b, const Topology& topology);

// One exact average inside each of these groups per iteration; without any, all zero.
Cost inside_cost(const std::vector<Group>& replicas, const Topology& topology, double bytes);

// Of one average per iteration that is carried out like this.
Cost cost_of(const Lowering& lowering, const Topology& topology, double bytes);

// One exact average of everyone per iteration.
double ring_seconds(const Topology& topology, double bytes);
double hierarchical_seconds(const Topology& topology, double bytes);

}  // namespace dssync
