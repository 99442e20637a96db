// How often workers share what they measured, and when they probe. Not thread-safe. Deterministic: feed it what all
// workers share.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/monitor/link_monitor.h"
#include "dssync/monitor/probe.h"
#include "dssync/monitor/sample.h"

namespace dssync {

class Pacer {
 public:
  // How long the probes took.
  void add(const std::vector<ProbeSample>& probes, double iteration_seconds);

  // The probe for this iteration; without transfers where none is due. Within propose_probe's budget; more often where
  // it is urgent, for then slow iterations cost more, but for at most a quarter of the time.
  Probe next_probe(const LinkMonitor& monitor, std::int64_t iteration, double iteration_seconds, bool urgent);

  // Iterations of the next batch, which starts with this one.
  std::size_t batch_size(const LinkMonitor& monitor, std::int64_t iteration, double iteration_seconds) const;

 private:
  std::int64_t probes_ = 0;
  std::int64_t planned_ = 0;   // iteration of the next probe that is within the budget
  std::int64_t earliest_ = 0;  // and of the next one however urgent it is
};

}  // namespace dssync
