// Checks of a schedule.
#include "dssync/planner/schedule.h"

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {

void check_schedule(const Schedule& schedule, int workers) {
  if (schedule.empty()) {
    throw Error("a schedule needs at least one round");
  }
  for (std::size_t t = 0; t < schedule.size(); ++t) {
    std::vector<bool> seen(static_cast<std::size_t>(workers), false);
    int count = 0;
    for (const Group& group : schedule[t].groups) {
      for (const Rank rank : group) {
        if (rank < 0 || rank >= workers) {
          throw Error(fmt::format("round {} names rank {}, but there are ranks 0 to {}", t, rank, workers - 1));
        }
        if (seen[static_cast<std::size_t>(rank)]) {
          throw Error(fmt::format("round {} has rank {} in two groups", t, rank));
        }
        seen[static_cast<std::size_t>(rank)] = true;
        ++count;
      }
    }
    if (count != workers) {
      throw Error(fmt::format("round {} divides {} of {} workers", t, count, workers));
    }
  }
}

}  // namespace dssync
