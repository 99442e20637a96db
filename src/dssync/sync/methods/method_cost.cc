#include "dssync/sync/methods/method_cost.h"

#include <algorithm>
#include <numeric>

namespace dssync {

double volume_of_average(const SyncOptions& options, int states_per_parameter) {
  if (options.method != Method::kDsSync || options.state == StateTreatment::kLocal) return 1;
  return 1 + static_cast<double>(states_per_parameter) / options.state_parts();
}

Cost method_cost(Method method, const Topology& topology, double bytes, const Plan* plan) {
  if (plan != nullptr) return cost_of(plan->rounds, plan->shards, topology, bytes);
  Group everyone(static_cast<std::size_t>(topology.workers()));
  std::iota(everyone.begin(), everyone.end(), 0);
  switch (method) {
    case Method::kBspRing:
      return cost_of(lower_to_ring(everyone, topology), topology, bytes);
    case Method::kBspHierarchical:
      return cost_of(lower_hierarchically(everyone, topology), topology, bytes);
    default:
      return cost_of(lower_to_servers(everyone, topology), topology, bytes);
  }
}

double iteration_seconds(const SyncOptions& options, const Cost& cost, Seconds compute) {
  const double communication = cost.seconds_per_iteration + cost.pipeline_seconds;
  switch (options.method) {
    case Method::kBspRing:
    case Method::kBspHierarchical:
    case Method::kPs:
      return compute.count() * kForwardPart + std::max(compute.count() * (1 - kForwardPart), communication);
    case Method::kAsp:
    case Method::kSsp:
      return compute.count() + communication;
    case Method::kLocalSgd:
    case Method::kDsSync:
      break;
  }
  return options.overlap ? std::max(compute.count(), communication) : compute.count() + communication;
}

}  // namespace dssync
