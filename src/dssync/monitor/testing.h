// A training run on a network that changes, for the tests of the monitor: averages as fluids that share links fairly,
// operation by operation, with pieces, late workers, noise and lost samples.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dssync/monitor/link_monitor.h"
#include "dssync/monitor/pacer.h"
#include "dssync/monitor/policy.h"
#include "dssync/monitor/probe.h"
#include "dssync/monitor/sample.h"
#include "dssync/planner/stage_table.h"
#include "dssync/topology/topology.h"

namespace dssync::testing {

inline constexpr double kMegabit = 125e3;  // per second, in bytes

struct SimulationOptions {
  unsigned seed = 1;
  double noise = 0.03;               // of measured durations, relative
  double lost = 0;                   // part of the samples; of whole workers in an iteration, likewise
  int pieces = 4;                    // of chains with several phases
  double operation_seconds = 0.001;  // each operation takes so much longer than its bytes need
  double unfairness = 0.3;           // of sharing: standard deviation of the logarithm of weights
  double compute_seconds = 0.05;     // of every worker
  double drag = 1;                   // a probe takes from 1 to so many times as long: its hosts are busy
};

class TrainingSimulation {
 public:
  TrainingSimulation(const Topology& truth, double bytes, const SimulationOptions& options = {});

  void adopt(std::shared_ptr<const StageTable> table) { table_ = std::move(table); }
  // From this time on (seconds since the start); calls ascend.
  void change_network(double time, const Topology& truth);
  // From now on interfaces count, and others send so much, in bytes per second by LinkId. What they leave is up to
  // change_network.
  void set_others(std::vector<double> rates) { others_ = std::move(rates); }
  void set_compute(Rank rank, double seconds) { compute_[static_cast<std::size_t>(rank)] = seconds; }

  // One iteration of all workers. Returns how much later the last one is done than after the iteration before.
  double run(std::int64_t iteration, SampleBatch& samples);

  // Transfers while workers compute, and wait where it takes longer; adds what both ends report. Returns how long it
  // took.
  double run(const Probe& probe, std::int64_t iteration, SampleBatch& samples);

  double now() const { return now_; }

 private:
  friend class IterationSimulation;

  double normal();
  double noisy(double seconds);
  bool loses();
  const Topology& network() { return changes_.front().second; }
  // Lets changes up to this time happen.
  void advance(double time);

  double bytes_;
  SimulationOptions options_;
  std::mt19937 random_;
  std::deque<std::pair<double, Topology>> changes_;  // the first one is in force
  std::shared_ptr<const StageTable> table_;
  std::vector<double> others_;   // by link; empty: interfaces do not count
  std::vector<double> compute_;  // by rank
  std::vector<double> free_at_;  // by rank: when it starts to compute
  double now_ = 0;               // when the last worker was done
};

// Simulation, monitor, policy and probes as a runtime would put them together.
class AdaptiveRun {
 public:
  struct Options {
    SimulationOptions simulation;
    PolicyOptions policy;
    MonitorOptions monitor;
    double bytes = 8e6;
    double disagreement = 0.5;
    int switch_delay = 2;  // iterations from a decision to its plan being in force
    bool adapts = true;
    bool probes = true;
  };
  explicit AdaptiveRun(const Topology& nominal) : AdaptiveRun(nominal, Options()) {}
  AdaptiveRun(const Topology& nominal, const Options& options);

  // Mean seconds of one.
  double iterations(int count);
  void run_until(double time);
  // Mean seconds of an iteration of a fresh run that is planned for this network.
  static double fresh_seconds(const Topology& network, const Options& options);

  double megabits(const std::string& link) const;
  std::vector<std::string> slow_links() const;

  TrainingSimulation simulation;
  LinkMonitor monitor;
  ReplanPolicy policy;
  std::int64_t iteration = 0;
  std::vector<PlanChange> changes;
  double probe_seconds = 0;
  bool verbose = false;

 private:
  double iteration_seconds() const { return monitor.iteration_seconds(options_.policy.overlap); }
  void finish_batch();
  void probe();
  void show() const;

  Options options_;
  SampleBatch batch_;
  std::int64_t batch_end_ = 1;
  std::optional<PlanChange> pending_;
  std::int64_t switch_at_ = 0;
  Pacer pacer_;
};

// Others send over all links whose name starts with `name`, so that they have `megabits` left, as they are and as their
// interfaces count.
void contend(AdaptiveRun& run, const std::vector<std::string>& names, double megabits);

// Two racks of four, 200 Mbit/s a host.
Topology two_racks(double core_megabits);

// The capacities of all links whose name starts with `name`, in Mbit/s.
Topology with_links(const Topology& topology, const std::string& name, double megabits);

}  // namespace dssync::testing
