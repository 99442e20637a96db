// Which links explain that stages were slow? The smallest explanation that no other stage contradicts. Internal to the
// monitor. Pure.
#pragma once

#include <vector>

#include "dssync/monitor/stage_judge.h"
#include "dssync/planner/stage_table.h"

namespace dssync {

// What is known of a link beside the stages' times, in bytes per second.
struct LinkFacts {
  double nominal = 0;
  double capacity = 0;  // as assumed
  double proven = 0;    // lately
  double others = 0;    // what others put on it, as its host's interface counts; 0 where nobody counts
};

// Whether others explain that a link has only this capacity left: they send most of what it lacks.
bool is_taken(const LinkFacts& link, double capacity);

struct Blame {
  LinkId link = kNone;
  double capacity = 0;
  int stages = 0;        // slow ones that it explains
  double excess = 1;     // the largest of them
  int alternatives = 0;  // other links that explain the same stages as well: all of them are blamed
  bool taken = false;    // by others, who were seen: it is no mere suspect
};

// Facts by link. As few links as possible; of those that explain as much, the ones that others were seen to use.
// Deterministic.
std::vector<Blame> explain_slow_stages(const StageTable& table, const std::vector<StageVerdict>& verdicts,
                                       const std::vector<LinkFacts>& links);

}  // namespace dssync
