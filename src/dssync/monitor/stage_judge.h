// Which stages take longer than the capacities of their links explain, and how long they usually take. Internal to the
// monitor. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "dssync/monitor/history.h"
#include "dssync/monitor/observation.h"
#include "dssync/monitor/overhead.h"
#include "dssync/planner/stage_table.h"

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

// Capacities are in bytes per second by LinkId; those of links that do not count are infinite.
class StageJudge {
 public:
  // A stage is slow when it takes `tolerance` times what is expected of it, and `slack_seconds` longer.
  StageJudge(double tolerance, double slack_seconds) : tolerance_(tolerance), slack_seconds_(slack_seconds) {}

  // Another plan, with so many stages.
  void start(std::size_t stages) { overheads_.assign(stages, Overhead()); }

  // By stage. REQUIRES: the history has iterations of the plan.
  std::vector<StageVerdict> judge(const History& history, const std::vector<double>& capacities) const;

  // How long stages that are not slow take.
  void learn(const std::vector<StageVerdict>& verdicts, const StageTable& table, const std::vector<double>& capacities);

  // The link had another capacity than was assumed when stages that use it were learned.
  void doubt(LinkId link, const StageTable& table);

  // Seconds that the stage usually takes with these capacities, whatever it waits for.
  double usual_seconds(std::size_t stage, const StageTable& table, const IterationView& view,
                       const std::vector<double>& capacities) const;

 private:
  StageVerdict judge(std::size_t number, const History& history, const std::vector<double>& capacities) const;

  double tolerance_;
  double slack_seconds_;
  std::vector<Overhead> overheads_;  // by stage
};

}  // namespace dssync
