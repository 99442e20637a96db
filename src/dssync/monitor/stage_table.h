// The stages of a plan, numbered: what a StageSample's index means, and what each stage puts on which link. Every
// worker builds the same table from the same plan. Immutable; thread-safe.
//
// Order of the numbers: rounds (of equal ones only the first), then the groups of a round, phases, stages of a phase.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dssync/planner/schedule.h"
#include "dssync/planner/stages.h"
#include "dssync/topology/topology.h"

namespace dssync {

// Bytes on links for each byte of the vector, ascending links.
using LinkLoads = std::vector<std::pair<LinkId, double>>;

struct TableStage {
  int round = 0;  // canonical: the first with these groups
  int group = 0;  // in the round
  int phase = 0;
  Stage stage;
  LinkLoads loads;
  double latency_seconds = 0;
  // By index in stage.members, what this member's own messages put on links.
  struct Member {
    double sent = 0;     // bytes for each byte of the vector
    LinkLoads outgoing;  // on the links that what it sends crosses
    LinkLoads incoming;  // on the links that what it receives crosses
  };
  std::vector<Member> members;
};

// Whether both are stages of the same group's average.
inline bool is_same_chain(const TableStage& a, const TableStage& b) { return a.round == b.round && a.group == b.group; }

class StageTable {
 public:
  // `lowered_on` and `bytes` must be what the runtime lowers the groups with: the same topology (the estimated one
  // after a new plan), the same bytes. REQUIRES: schedule not empty, shards >= 1.
  StageTable(const Schedule& schedule, int shards, const Topology& lowered_on, double bytes);

  int size() const { return static_cast<int>(stages_.size()); }
  const TableStage& at(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  const std::vector<TableStage>& stages() const { return stages_; }

  // For the worker's group in this (canonical) round: the numbers of the stages it takes part in, by phase, in the
  // order of the lowering. Empty for a group of one. This is what a runtime marks its steps with.
  std::vector<std::vector<int>> numbers_of(std::size_t round, Rank rank) const;

  // The part of the vector that a round averages in an iteration; 0 where it is not its turn. Of canonical rounds.
  double share_of(std::size_t round, std::int64_t iteration) const;
  std::size_t rounds() const { return canonical_.size(); }

  // Seconds that an iteration's averages take with these capacities (mean over the cycle): as cost_of, but carried out
  // by the stages of this table rather than by those that would suit the capacities best. Same tree as `lowered_on`.
  double seconds_per_iteration(const Topology& capacities) const;

  // Adds to `bytes` (by LinkId) what a round puts on links when it averages `volume` bytes of the vector.
  void add_loads(std::size_t round, double volume, std::vector<double>& bytes) const;

  // The links of the cable of the worker's host, out and in; kNone where it has none.
  std::pair<LinkId, LinkId> cable_of(Rank rank) const { return cables_[static_cast<std::size_t>(rank)]; }

  int workers() const { return workers_; }
  double bytes() const { return bytes_; }

 private:
  double latency_of(std::int64_t iteration) const;

  std::vector<TableStage> stages_;
  std::vector<std::size_t> canonical_;             // by round of the schedule
  std::vector<std::pair<LinkId, LinkId>> cables_;  // by rank
  int shards_;
  int workers_;
  double bytes_;
};

}  // namespace dssync
