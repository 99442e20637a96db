#include "dssync/method/cost.h"

#include <algorithm>
#include <numeric>

namespace dssync {

double volume_of_average(const SyncOptions& options, int states_per_parameter) {
  SyncOptions resolved = options;
  const bool is_adam = states_per_parameter == 2;
  if (options.state == StateTreatment::kAuto) resolved.state = resolve(options.state, is_adam);
  return resolved.averages_state() ? 1 + static_cast<double>(states_per_parameter) / resolved.state_parts() : 1;
}

Cost method_cost(Method method, const Topology& topology, double bytes, const Plan* plan, const CodecChoice& codec) {
  if (plan != nullptr)
    return sum_of(cost_of(plan->rounds, plan->shards, topology, bytes, plan->replicas, plan->codecs), plan->inside,
                  topology);
  Group everyone(static_cast<std::size_t>(topology.workers()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const MethodInfo& info = info_of(method);
  const Lowering lowering = (info.lowering != nullptr ? info.lowering : lower_to_ring)(everyone, topology);
  const bool is_exact = info.kind == MethodInfo::Kind::kExactGradients;
  const Codecs codecs(is_exact ? codec.codec.value_or(Codec::kFloat32) : Codec::kFloat32, codec.bytes_per_second);
  return cost_of(encoded(lowering, topology, codecs), topology, bytes);
}

namespace {

// Of an iteration that averages so long during the backward pass.
double with_gradients(Seconds compute, double seconds) {
  return compute.count() * kForwardPart + std::max(compute.count() * (1 - kForwardPart), seconds);
}

double seconds_with(Overlap overlap, Seconds compute, double gradients, double communication) {
  const double computing = with_gradients(compute, gradients);
  switch (overlap) {
    case Overlap::kInLine:
      return computing + communication;
    case Overlap::kCombine:
      return std::max(computing, gradients + communication);
    case Overlap::kAuto:
    case Overlap::kLayered:
      break;
  }
  // Nobody steps before the gradients of an exact region are averaged: only the forward pass hides what follows.
  if (gradients > 0) return computing + std::max(0.0, communication - compute.count() * kForwardPart);
  return layered_seconds(kMostBuckets, compute, Seconds(communication)).count();
}

}  // namespace

double iteration_seconds(const SyncOptions& options, const Cost& cost, Seconds compute, const Cost& inside) {
  const double gradients = inside.seconds_per_iteration + inside.pipeline_seconds;
  const double communication = cost.seconds_per_iteration + cost.pipeline_seconds - gradients;
  switch (info_of(options.method).kind) {
    case MethodInfo::Kind::kExactGradients:
      return with_gradients(compute, communication);
    case MethodInfo::Kind::kAsynchronous:
      return compute.count() + communication;
    case MethodInfo::Kind::kScheduledAverages:
      return seconds_with(options.overlap, compute, gradients, communication);
  }
  return 0;
}

}  // namespace dssync
