// From samples to the free capacity of every link. Start here, then policy.h. docs/adaptation.md explains how slowness
// is attributed.
//
// Not thread-safe. Deterministic: workers that add the same batches in the same order, whatever the order inside of a
// batch, have bit-identical estimates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dssync/monitor/sample.h"
#include "dssync/planner/stage_table.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct MonitorOptions {
  // A stage is slow when it takes this many times what is expected of it ...
  double tolerance = 1.3;
  // ... and this much longer.
  double slack_seconds = 0.004;
  // A stage is judged by the median of its last so many iterations, none of them older than `forget_iterations`.
  int window = 3;
  int forget_iterations = 24;
  // An estimate of more than this part of the nominal capacity is the nominal capacity: so little is not worth a plan.
  double dead_band = 0.8;
  // Where nothing is heard of a slow link for so many iterations, it is taken to be twice as fast (up to nominal).
  int doubling_iterations = 40;
};

// One link's free capacity. Never above the nominal one: what the user's file says is what dssync may use.
struct LinkEstimate {
  Bandwidth capacity;            // to plan with
  Bandwidth low;                 // what was proven, lately
  Bandwidth high;                // what it may be; nominal where nothing speaks against it
  std::int64_t slow_since = -1;  // iteration; -1: not slow
  std::int64_t heard = -1;       // the last iteration that confirmed or corrected it; -1: never
  bool ambiguous = false;        // it is one of several that explain the same samples equally well
  Bandwidth others;              // what others put on it lately, as its host's interface counts; 0 where nobody counts
  Bandwidth watched_for;         // what it had when it was slow last, if it is not now, but watched for that; else 0
  // Since it was suspected last: in how many iterations probes crossed it, and the most that they brought through it.
  int probes = 0;
  Bandwidth probed;
};

// What one batch changed about a link.
struct LinkFinding {
  LinkId link = kNone;
  Bandwidth from;
  Bandwidth to;
  std::string reason;  // "4 stages that cross it took 8.1 times as long as expected"
};

class LinkMonitor {
 public:
  // `nominal`: the network as the user describes it.
  explicit LinkMonitor(const Topology& nominal, const MonitorOptions& options = {});
  ~LinkMonitor();

  // The plan in force from this iteration on. Call it before adding batches with such iterations; earlier iterations
  // are still read with the table before.
  void adopt(std::int64_t first_iteration, std::shared_ptr<const StageTable> table);

  // Judges the iterations of the batch. Samples that make no sense (an unknown stage, no member, nothing sent, no time)
  // and iterations that were judged before are ignored.
  void add(const SampleBatch& batch);

  const Topology& nominal() const;
  const std::vector<LinkEstimate>& estimates() const;  // by LinkId
  const std::vector<LinkFinding>& findings() const;    // of the last batch, by link

  // The nominal network with the estimated capacities: what to plan on. Of links that could not be told apart all are
  // slow in it, which makes no link worse than the others: no reason for another plan, yet.
  Topology estimated() const;

  // The same with one guess: of links that could not be told apart, only those that probes found slowest are slow,
  // and of those the ones with the most workers behind them. For statistics over time.
  Topology likely() const;

  // Whether something is slow and a probe will tell what it is: better not to act on it, for a few iterations.
  bool undecided() const;

  // Whether a slow link has turned out to be faster, a few iterations ago at most, and links are slow: probes will tell
  // how fast they are.
  bool recovering() const;

  // Whether a link that was slow a while ago may be so again: stages that cross it take a little longer than usual, and
  // it was not probed lately.
  bool relapsing() const;

  // Slow links of which too little is heard to know whether they still are, all of them while one has turned out to be
  // faster, those that nobody could tell apart, and those that were slow a while ago and are spared by the plan in
  // force, so that its stages would not show it. Most doubtful first. What to do about it: probe.h.
  std::vector<LinkId> links_to_probe() const;

  // Median over the last iterations of what the slowest worker computes in one; 0 before the first sample.
  double compute_seconds() const;
  // Of computing and averages, one after the other or overlapped: the median of an iteration in the last window, and
  // the sum of all iterations so far. An iteration of which nothing was heard counts as the median. 0 before the first.
  double iteration_seconds(bool overlap) const;
  double elapsed_seconds(bool overlap) const;

  std::int64_t last_iteration() const;  // judged so far; -1 before

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dssync
