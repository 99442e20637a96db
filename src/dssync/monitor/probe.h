// Cheap transfers that tell whether a slow link has recovered or is slow again, or which of several suspects is the
// slow one. Pure; thread-safe; the same on every worker.
//
// A probe clears links: that much went through in that time, so each link on the way has at least that capacity,
// whatever else was under way; but not links that others fill, for a small one slips through. So it may run at any
// time; best while the links are quiet. A slow one counts only against links that are watched.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/monitor/link_monitor.h"

namespace dssync {

struct ProbeTransfer {
  Rank from = 0;
  Rank to = 0;
  double bytes = 0;
};

// Transfers that start together; no worker sends more than one of them, none receives more than one. Several times in a
// row, since one may meet other traffic: the best turn counts.
struct Probe {
  std::vector<ProbeTransfer> transfers;  // none: nothing to probe
  int turns = 1;
  double seconds = 0;         // that it takes if the estimates are true
  std::int64_t interval = 0;  // iterations from one such probe to the next that keep it within the budget
};

// For the links that the monitor wants probed. Pairs cross as few doubtful links as possible, so that a slow transfer
// leaves few suspects; over successive `turn`s (count the probes) different pairs are tried.
// `iteration_seconds`: the time of an iteration; `budget`: the part of it that probes may take.
Probe propose_probe(const LinkMonitor& monitor, std::int64_t turn, double iteration_seconds, double budget = 0.01);

}  // namespace dssync
