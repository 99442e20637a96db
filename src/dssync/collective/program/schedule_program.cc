#include "dssync/collective/program/schedule_program.h"

namespace dssync {

ScheduleProgram::ScheduleProgram(const Schedule& schedule, int shards) : cycle_(schedule), shards_(shards) {}

std::vector<ScheduledSlice> ScheduleProgram::slices(std::int64_t size, std::int64_t iteration, int period) const {
  std::vector<ScheduledSlice> result;
  for (int shard = 0; shard < shards_; ++shard) {
    const auto [start, stop] = stretch_of(size, shard);
    const std::int64_t length = stop - start;
    const std::int64_t part = cycle_.cycles_before(iteration, shard) % period;
    const std::int64_t begin = start + length * part / period;
    const std::int64_t end = start + length * (part + 1) / period;
    if (begin == end) continue;
    const std::size_t round = cycle_.round_at(iteration, shard);
    if (!result.empty() && result.back().round == round && result.back().end == begin) {
      result.back().end = end;
    } else {
      result.push_back({begin, end, round});
    }
  }
  return result;
}

}  // namespace dssync
