// The stages of a plan on a network, numbered: what each does, in which order, and what it puts on which link. Every
// worker makes the same table from the same plan. A plan has one table: who plans again, who watches the links and who
// carries the stages out share it. Immutable; thread-safe.
//
// Order of the numbers: rounds (of equal ones only the first), then the groups of a round, phases, stages of a phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dssync/base/index.h"
#include "dssync/planner/codecs.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/planner/stages.h"
#include "dssync/planner/traffic.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct TableStage {
  int round = 0;  // canonical: the first with these groups
  int group = 0;  // in the round
  int phase = 0;
  Stage stage;
  LinkLoads loads;  // bytes on the wire for each byte of the vector
  double latency_seconds = 0;
  std::vector<MemberTraffic> members;  // by index in stage.members
};

// Whether both are stages of the same group's average.
inline bool is_same_chain(const TableStage& a, const TableStage& b) { return a.round == b.round && a.group == b.group; }

class StageTable {
 public:
  // Lowers the groups of the schedule, which are unions of `replicas` (none: every worker is one), on `network` for a
  // vector of so many bytes in these codecs. After a new plan that is the estimated network.
  // REQUIRES: schedule not empty, shards >= 1.
  StageTable(const Schedule& schedule, int shards, const Topology& network, double bytes,
             const std::vector<Group>& replicas = {}, const Codecs& codecs = {});

  int size() const { return static_cast<int>(stages_.size()); }
  const TableStage& at(int stage) const { return stages_[index(stage)]; }
  const std::vector<TableStage>& stages() const { return stages_; }

  // How a group of a (canonical) round is averaged: the numbers of its stages by phase, in the order of the lowering,
  // and the stages themselves. Empty for a group of one.
  std::vector<std::vector<int>> numbers_of(std::size_t round, std::size_t group) const;
  Lowering lowering_of(std::size_t round, std::size_t group) const;

  const Cycle& cycle() const { return cycle_; }
  std::size_t rounds() const { return cycle_.length(); }

  // The part of the vector that a round averages in an iteration; 0 where it is not its turn. Of canonical rounds.
  double share_of(std::size_t round, std::int64_t iteration) const;

  // Seconds that an iteration's averages take with these capacities (mean over the cycle): as cost_of, but carried out
  // by the stages of this table rather than by those that would suit the capacities best. Same tree as network().
  double seconds_per_iteration(const Topology& capacities) const;

  // Adds to `bytes` (by LinkId) what a round puts on links when it averages `volume` bytes of the vector.
  void add_loads(std::size_t round, double volume, std::vector<double>& bytes) const;

  // The links of the cable of the worker's host, out and in; kNone where it has none.
  std::pair<LinkId, LinkId> cable_of(Rank rank) const { return cables_[index(rank)]; }

  const Topology& network() const { return network_; }
  const Replicas& replicas() const { return replicas_; }
  int workers() const { return network_.workers(); }
  double bytes() const { return bytes_; }

 private:
  void add_group(const Group& group, int round, int number, const Codecs& codecs);
  // Of the groups [begin, end) of a round.
  std::span<const TableStage> stages_of(std::size_t round, std::size_t begin, std::size_t end) const;
  std::span<const TableStage> stages_of(std::size_t round) const { return stages_of(round, 0, SIZE_MAX); }
  RoundLoad load_of_round(std::size_t round) const;
  Seconds latency_of(std::size_t round) const;

  Topology network_;
  Replicas replicas_;
  Cycle cycle_;
  int shards_;
  double bytes_;
  std::vector<TableStage> stages_;
  std::vector<Seconds> coding_;                    // of the distinct rounds, for each shard
  std::vector<RoundLoad> round_loads_;             // likewise
  std::vector<std::pair<LinkId, LinkId>> cables_;  // by rank
};

}  // namespace dssync
