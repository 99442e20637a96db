// Plan again? Weighs the plan in force against a new one on the estimated network, and keeps calm when estimates swing.
// Not thread-safe. Deterministic. docs/adaptation.md has the reasons for the thresholds.
//
// Once per batch, on every worker:
//   for (const SampleBatch& part : by_iteration(batch)) {
//     monitor.add(part);
//     policy.remember(monitor);
//   }
//   if (auto change = policy.consider(monitor)) {
//     ... make the groups of change->table, agree on the iteration, switch ...
//     policy.adopt(iteration, change->plan, change->table);  monitor.adopt(iteration, change->table);
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dssync/monitor/link_monitor.h"
#include "dssync/monitor/plan_change.h"
#include "dssync/planner/planner.h"
#include "dssync/planner/stage_table.h"

namespace dssync {

struct PolicyOptions {
  // The least part of an iteration's time that a new plan must save.
  double least_gain = 0.1;
  // Gains of successive batches are added up until they reach this: 10 % must last for three batches, 30 % is acted on
  // at once.
  double patience = 0.3;
  // Plans are compared on the mean of the last so many iterations, twice as many after each change, up to `longest`; a
  // doubling is forgotten after sixteen times as many iterations without a change.
  int memory_iterations = 4;
  int longest_memory = 512;
  // Contention that comes and goes faster than plans can follow: since it began, but for so many iterations at most,
  // what is best on average counts.
  int wave_iterations = 192;
  // Averages run while the next gradient is computed: an iteration takes the longer of the two, not their sum.
  bool overlap = false;
};

class ReplanPolicy {
 public:
  // From a network to a plan, always the same one for the same network; nothing where there is none.
  using PlanFunction = std::function<std::optional<Plan>(const Topology&)>;

  // `bytes`: that an iteration averages, as for Planner.
  ReplanPolicy(PlanFunction plan, double bytes, const PolicyOptions& options = {});
  ~ReplanPolicy();

  // The plan in force from this iteration on, and its stages. The first one, and every change.
  void adopt(std::int64_t iteration, const Plan& plan, std::shared_ptr<const StageTable> table);

  // The plan in force, and its stages for LinkMonitor::adopt. REQUIRES: adopt was called.
  const Plan& plan() const;
  std::shared_ptr<const StageTable> table() const;

  // After each iteration that the monitor has judged.
  void remember(const LinkMonitor& monitor);

  // After each batch. A change that has made iterations slower is taken back. Once it has answered with a change it
  // answers nothing until adopt was called. REQUIRES: adopt was called.
  std::optional<PlanChange> consider(const LinkMonitor& monitor);

  // The plan function answers differently from now on (another limit on S): the change to what it says, whatever that
  // saves; nothing where that is the plan in force, or where a change is still to be adopted. REQUIRES: adopt was
  // called.
  std::optional<PlanChange> plan_anew(const LinkMonitor& monitor, const std::string& reason);

  // Whether what a probe tells may soon matter for consider(): suspects can be told apart, a link may be slow again,
  // one seems to be fast and has not shown it lately, or one has become faster, unless that comes and goes.
  bool needs_probe(const LinkMonitor& monitor) const;

  // Whether consider() may still take the last change back.
  bool on_trial() const;

  // Changes that were adopted; the first plan is none.
  int changes() const { return changes_; }

 private:
  struct State;
  struct Candidate;

  const Topology& planned_network() const;
  std::int64_t memory() const;
  std::optional<PlanChange> regret(const LinkMonitor& monitor);
  void forget_wrong_lesson(const LinkMonitor& monitor);
  bool is_ruled_out(const LinkMonitor& monitor) const;
  bool is_proven(const LinkMonitor& monitor, std::optional<std::int64_t> since);
  std::shared_ptr<const Candidate> ask(const Topology& network);
  double iteration_seconds(const StageTable& table, const Topology& network, double compute) const;
  double remembered_seconds(const StageTable& table, std::int64_t iterations, double compute) const;
  template <typename Action>
  void for_each_network(std::int64_t iterations, Action action) const;
  double gain_now(const Candidate& candidate, const Topology& network, double compute) const;
  std::int64_t wave_iterations(double compute) const;
  Topology mean_network(std::int64_t iterations) const;
  std::vector<Topology> usual_networks(std::int64_t iterations) const;
  std::shared_ptr<const Candidate> best_on_average(std::int64_t iterations, double compute);
  PlanChange propose(const LinkMonitor& monitor, const Candidate& candidate, const std::string& reason);

  PlanFunction plan_;
  double bytes_;
  PolicyOptions options_;
  int changes_ = -1;
  std::unique_ptr<State> state_;
};

}  // namespace dssync
