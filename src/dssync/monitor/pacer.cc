#include "dssync/monitor/pacer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace dssync {
namespace {

constexpr double kUrgent = 0.25;       // the part of the time that urgent probes may take
constexpr double kBatchSeconds = 0.3;  // more often it makes no difference to training, and costs CPU time
constexpr double kMostBatch = 64;

}  // namespace

void Pacer::add(const std::vector<ProbeSample>& probes, double iteration_seconds) {
  std::map<std::tuple<std::int64_t, Rank, Rank, int>, double> turns;
  for (const ProbeSample& probe : probes) {
    const auto [at, added] = turns.try_emplace({probe.iteration, probe.from, probe.to, probe.turn}, probe.seconds);
    if (!added) at->second = std::min(at->second, probe.seconds);
  }
  std::map<std::tuple<std::int64_t, Rank, Rank>, double> transfers;
  for (const auto& [turn, seconds] : turns) {
    const auto& [iteration, from, to, number] = turn;
    transfers[{iteration, from, to}] += seconds;
  }
  for (const auto& [transfer, seconds] : transfers) {
    const double iterations = std::min(1e6, std::ceil(seconds / std::max(1e-9, kUrgent * iteration_seconds)));
    earliest_ = std::max(earliest_, std::get<0>(transfer) + static_cast<std::int64_t>(iterations));
  }
}

Probe Pacer::next_probe(const LinkMonitor& monitor, std::int64_t iteration, double iteration_seconds, bool urgent) {
  if (iteration < earliest_ || (iteration < planned_ && !urgent)) return {};
  Probe probe = propose_probe(monitor, probes_, iteration_seconds);
  if (probe.transfers.empty()) return probe;
  ++probes_;
  planned_ = iteration + probe.interval;
  return probe;
}

std::size_t Pacer::batch_size(const LinkMonitor& monitor, std::int64_t iteration, double iteration_seconds) const {
  if (monitor.undecided() && iteration >= earliest_) return 1;  // a probe may decide something
  const double iterations = std::ceil(kBatchSeconds / std::max(1e-9, iteration_seconds));
  return static_cast<std::size_t>(std::clamp(iterations, 1.0, kMostBatch));
}

}  // namespace dssync
