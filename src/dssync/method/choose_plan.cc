#include "dssync/method/choose_plan.h"

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/method/cost.h"

namespace dssync {
namespace {

// Another mode has to be so much faster than the one that adds nothing to S.
constexpr double kWorthwhile = 0.95;

double missed_by(Overlap overlap, const std::vector<Group>& replicas, int workers) {
  const int count = replicas.empty() ? workers : static_cast<int>(replicas.size());
  return overlap == Overlap::kCombine ? step_disagreement(count, workers) : 0;
}

std::vector<Group> replicas_for(const Topology& topology, double bytes, const SyncOptions& options) {
  return choose_replicas(topology, {.bytes = bytes,
                                    .disagreement = options.disagreement,
                                    .group_limit = options.group_limit,
                                    .published = options.published,
                                    .exact_inside = options.exact_inside,
                                    .backward = options.compute * (1 - kForwardPart),
                                    .codecs = options.codec_choice()});
}

double seconds_of(const PlanChoice& choice, SyncOptions options, const Topology& topology) {
  options.overlap = choice.overlap;
  const Cost& inside = choice.plan.inside;
  return iteration_seconds(options, sum_of(choice.plan.cost, inside, topology), options.compute, inside);
}

}  // namespace

double missed_disagreement(Overlap overlap, const Plan& plan, int workers) {
  return missed_by(overlap, plan.replicas, workers);
}

double total_disagreement(Overlap overlap, const Plan& plan, int workers) {
  return plan.disagreement() + missed_disagreement(overlap, plan, workers);
}

PlanChoice choose_plan(const Topology& topology, double bytes, const SyncOptions& options, bool can_step_early) {
  const std::vector<Group> replicas = replicas_for(topology, bytes, options);
  Planner planner(topology, bytes, options.group_limit, replicas, options.codec_choice());
  PlanChoice choice{resolve(options.overlap, can_step_early), {}};
  if (options.published) {
    choice.plan = planner.published();
    return choice;
  }
  const double missed = missed_by(choice.overlap, replicas, topology.workers());
  if (missed > options.disagreement) {
    throw InputError(
        fmt::format("the limit on S is {:g}, but averages that combine miss the latest step, which alone "
                    "adds {:g}; expected a limit of at least that, or overlap layered",
                    options.disagreement, missed));
  }
  choice.plan = planner.require(options.disagreement - missed);
  const double missed_combined = missed_by(Overlap::kCombine, replicas, topology.workers());
  if (options.overlap != Overlap::kAuto || !(options.compute.count() > 0) || missed_combined > options.disagreement) {
    return choice;
  }
  const std::optional<Plan> tighter = planner.best(options.disagreement - missed_combined);
  if (!tighter) return choice;
  PlanChoice combined{Overlap::kCombine, *tighter};
  const bool is_faster = seconds_of(combined, options, topology) < kWorthwhile * seconds_of(choice, options, topology);
  return is_faster ? combined : choice;
}

}  // namespace dssync
