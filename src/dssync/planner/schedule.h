// Who averages with whom, and when: groups, rounds and the cyclic schedule. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

using Group = std::vector<Rank>;  // ascending; a group of one keeps its local step

// One division of the workers. Invariant: every rank is in exactly one group; groups stand in the order of their first
// rank.
struct Round {
  std::string label;  // for people: "all", "whole rack", "pairs in rack-a", "nobody"
  std::vector<Group> groups;

  bool operator==(const Round&) const = default;
};

// The rounds of one cycle; `Cycle` says whose turn it is.
using Schedule = std::vector<Round>;

// Which round is used when. Iteration t, shard s uses round (t + s) mod length. Rounds with the same groups are one and
// the same: the first of them stands for all. Immutable.
class Cycle {
 public:
  explicit Cycle(const Schedule& schedule);

  std::size_t length() const { return kinds_.size(); }

  // The first round with the same groups.
  std::size_t first_equal(std::size_t round) const { return distinct_[kinds_[round]]; }

  // The rounds that are the first of their kind, ascending, and which of these has a round's groups.
  const std::vector<std::size_t>& distinct() const { return distinct_; }
  std::size_t kind_of(std::size_t round) const { return kinds_[round]; }

  // The round that a shard uses; of equal rounds the first.
  std::size_t round_at(std::int64_t iteration, int shard) const { return first_equal(turn(iteration, shard)); }

  // How many whole cycles are over for a shard.
  std::int64_t cycles_before(std::int64_t iteration, int shard) const {
    return (iteration + shard) / static_cast<std::int64_t>(length());
  }

  // Iterations since everyone last averaged a shard together, or since the start, where all are equal: at least 1.
  // Where no round averages everyone, a whole cycle at most.
  std::int64_t since_common(std::int64_t iteration, int shard) const;

  // After so many iterations everything repeats. With a multiple of `length` shards all iterations are alike.
  std::size_t period(int shards) const { return static_cast<std::size_t>(shards) % length() == 0 ? 1 : length(); }

 private:
  std::size_t turn(std::int64_t iteration, int shard) const {
    return static_cast<std::size_t>((iteration + shard) % static_cast<std::int64_t>(length()));
  }

  std::vector<std::size_t> distinct_;
  std::vector<std::size_t> kinds_;  // by round: an index into distinct_
  std::vector<bool> is_common_;     // by round: everyone is in one group
};

// Throws Error, naming the round and the rank, unless every round divides ranks 0..workers-1.
void check_schedule(const Schedule& schedule, int workers);

}  // namespace dssync
