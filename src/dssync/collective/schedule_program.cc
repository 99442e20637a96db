#include "dssync/collective/schedule_program.h"

namespace dssync {

ScheduleProgram::ScheduleProgram(const Schedule& schedule, int shards) : shards_(shards) {
  for (std::size_t round = 0; round < schedule.size(); ++round) {
    std::size_t first = 0;
    while (schedule[first].groups != schedule[round].groups) ++first;
    canonical_.push_back(first);
  }
}

std::vector<ScheduledSlice> ScheduleProgram::slices(std::int64_t size, std::int64_t iteration, int period) const {
  const auto cycle = static_cast<std::int64_t>(canonical_.size());
  std::vector<ScheduledSlice> result;
  for (int shard = 0; shard < shards_; ++shard) {
    const std::int64_t start = size * shard / shards_;
    const std::int64_t length = size * (shard + 1) / shards_ - start;
    const std::int64_t turn = iteration + shard;
    const std::int64_t part = turn / cycle % period;
    const std::int64_t begin = start + length * part / period;
    const std::int64_t end = start + length * (part + 1) / period;
    if (begin == end) continue;
    const std::size_t round = canonical_[static_cast<std::size_t>(turn % cycle)];
    if (!result.empty() && result.back().round == round && result.back().end == begin) {
      result.back().end = end;
    } else {
      result.push_back({begin, end, round});
    }
  }
  return result;
}

}  // namespace dssync
