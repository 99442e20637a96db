// Turns and checks of a schedule.
#include "dssync/planner/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"

namespace dssync {

Cycle::Cycle(const Schedule& schedule) {
  for (std::size_t round = 0; round < schedule.size(); ++round) {
    std::size_t kind = 0;
    while (kind < distinct_.size() && schedule[distinct_[kind]].groups != schedule[round].groups) {
      ++kind;
    }
    if (kind == distinct_.size()) {
      distinct_.push_back(round);
    }
    kinds_.push_back(kind);
    is_common_.push_back(schedule[round].groups.size() == 1);
  }
}

std::int64_t Cycle::since_common(std::int64_t iteration, int shard) const {
  const std::int64_t most = std::min(static_cast<std::int64_t>(length()), iteration + 1);
  for (std::int64_t steps = 1; steps < most; ++steps) {
    if (is_common_[turn(iteration - steps, shard)]) return steps;
  }
  return most;
}

void check_schedule(const Schedule& schedule, int workers) {
  if (schedule.empty()) {
    throw Error("a schedule needs at least one round");
  }
  for (std::size_t t = 0; t < schedule.size(); ++t) {
    std::vector<bool> seen(index(workers), false);
    int count = 0;
    for (const Group& group : schedule[t].groups) {
      for (const Rank rank : group) {
        if (rank < 0 || rank >= workers) {
          throw Error(fmt::format("round {} names rank {}, but there are ranks 0 to {}", t, rank, workers - 1));
        }
        if (seen[index(rank)]) {
          throw Error(fmt::format("round {} has rank {} in two groups", t, rank));
        }
        seen[index(rank)] = true;
        ++count;
      }
    }
    if (count != workers) {
      throw Error(fmt::format("round {} divides {} of {} workers", t, count, workers));
    }
  }
}

}  // namespace dssync
