#include "dssync/method/cost.h"

#include <algorithm>
#include <numeric>

namespace dssync {

double volume_of_average(const SyncOptions& options, int states_per_parameter) {
  if (options.state_treatment() == StateTreatment::kLocal) return 1;
  return 1 + static_cast<double>(states_per_parameter) / options.state_parts();
}

Cost method_cost(Method method, const Topology& topology, double bytes, const Plan* plan) {
  if (plan != nullptr) return cost_of(plan->rounds, plan->shards, topology, bytes);
  Group everyone(static_cast<std::size_t>(topology.workers()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const MethodInfo& info = info_of(method);
  return cost_of((info.lowering != nullptr ? info.lowering : lower_to_ring)(everyone, topology), topology, bytes);
}

double iteration_seconds(const SyncOptions& options, const Cost& cost, Seconds compute) {
  const double communication = cost.seconds_per_iteration + cost.pipeline_seconds;
  switch (info_of(options.method).kind) {
    case MethodInfo::Kind::kExactGradients:
      return compute.count() * kForwardPart + std::max(compute.count() * (1 - kForwardPart), communication);
    case MethodInfo::Kind::kAsynchronous:
      return compute.count() + communication;
    case MethodInfo::Kind::kScheduledAverages:
      return options.overlap ? std::max(compute.count(), communication) : compute.count() + communication;
  }
  return 0;
}

}  // namespace dssync
