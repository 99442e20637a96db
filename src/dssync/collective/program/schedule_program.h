// Which slice of a vector is averaged by which round in a given iteration. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "dssync/planner/schedule.h"

namespace dssync {

struct ScheduledSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t round = 0;  // index into the schedule; of equal rounds always the first

  bool operator==(const ScheduledSlice&) const = default;
};

// Invariant: slices ascend, do not overlap, and are the same on all workers.
class ScheduleProgram {
 public:
  // REQUIRES: schedule not empty, shards >= 1.
  ScheduleProgram(const Schedule& schedule, int shards);

  // The slices of a vector of `size` elements in iteration t: all of it where the period is 1. With a period K each
  // shard averages one K-th of its elements throughout a cycle, and the next K-th in the next cycle: whatever K is,
  // every element meets every round. Neighbours with equal rounds are one slice.
  std::vector<ScheduledSlice> slices(std::int64_t size, std::int64_t iteration, int period = 1) const;

  // The elements of a vector of `size` that are shard `shard`, and when everyone last averaged them together (Cycle).
  int shards() const { return shards_; }
  std::pair<std::int64_t, std::int64_t> stretch_of(std::int64_t size, int shard) const {
    return {size * shard / shards_, size * (shard + 1) / shards_};
  }
  std::int64_t since_common(std::int64_t iteration, int shard) const { return cycle_.since_common(iteration, shard); }

 private:
  Cycle cycle_;
  int shards_;
};

}  // namespace dssync
