// Which links explain that stages were slow? The smallest explanation that no other stage contradicts. Internal to the
// monitor. Pure.
#pragma once

#include <vector>

#include "dssync/monitor/observation.h"
#include "dssync/monitor/stage_table.h"

namespace dssync {

// What the last iterations say about one stage.
struct StageVerdict {
  bool seen = false;   // often enough to say something
  bool slow = false;   // longer than the capacities explain
  double seconds = 0;  // median
  double excess = 1;   // median of seconds / expected, with the stage's usual overhead taken off
  // In the order of its loads in the table: the capacity with which this link alone would explain the time it took, if
  // all that is on the link goes through meanwhile. What truly goes through is at most that, so the capacity is, too.
  std::vector<double> implied;
  const IterationView* latest = nullptr;  // the last iteration that it was seen in
};

struct Blame {
  LinkId link = kNone;
  double capacity = 0;
  int stages = 0;        // slow ones that it explains
  double excess = 1;     // the largest of them
  int alternatives = 0;  // other links that explain the same stages as well: all of them are blamed
};

// By link: `capacities` as assumed, and `proven` ones lately. Deterministic.
std::vector<Blame> explain_slow_stages(const StageTable& table, const std::vector<StageVerdict>& verdicts,
                                       const std::vector<double>& capacities, const std::vector<double>& proven);

}  // namespace dssync
