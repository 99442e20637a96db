// The planner's front: checks the request, picks the search, measures what it found.
#include "dssync/planner/planner.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/limited_search.h"
#include "dssync/planner/nested_search.h"
#include "dssync/planner/rounds.h"

namespace dssync {

int Plan::replica_count() const {
  if (!replicas.empty()) return static_cast<int>(replicas.size());
  std::size_t workers = 0;
  for (const Group& group : rounds.front().groups) workers += group.size();
  return static_cast<int>(workers);
}

class Planner::Search {
 public:
  Search(const Topology& topology, double bytes, int group_limit, const std::vector<Group>& replicas)
      : topology_(topology),
        replicas_(topology, replicas),
        bytes_(bytes),
        group_limit_(group_limit),
        costs_(topology, replicas_),
        unit_(static_cast<double>(replicas_.count()) / topology.workers()) {}

  int group_limit() const { return group_limit_; }
  bool is_limited() const { return group_limit_ != 0 && group_limit_ < replicas_.count(); }

  std::optional<Plan> best(double disagreement) {
    std::optional<Found> found =
        is_limited() ? limited().best(disagreement * unit_) : std::optional(nested().best(disagreement * unit_));
    return found ? std::optional(measure(std::move(*found))) : std::nullopt;
  }

  double smallest_disagreement() { return is_limited() ? limited().smallest_disagreement() / unit_ : 0; }

  Plan published() {
    const int root = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(replicas_.count())) - 1e-9));
    const int group = group_limit_ != 0 ? group_limit_ : std::max(2, root);
    Found found;
    for (const Division& division : mixing_rounds(replicas_.count(), group)) {
      found.rounds.push_back(make_round(division, replicas_));
    }
    if (found.rounds.empty()) {  // a single replica
      found.rounds.push_back(make_round({}, replicas_));
    }
    return measure(std::move(found));
  }

 private:
  LimitedSearch& limited() {
    if (!limited_) {
      limited_.emplace(topology_, replicas_, bytes_, group_limit_, costs_);
    }
    return *limited_;
  }

  NestedSearch& nested() {
    if (!nested_) {
      nested_.emplace(topology_, replicas_, bytes_, costs_);
    }
    return *nested_;
  }

  Plan measure(Found found) {
    Plan plan;
    plan.rounds = std::move(found.rounds);
    plan.shards = found.shards;
    plan.mixing = measure_mixing(plan.rounds, topology_.workers());
    plan.mixing.steady_disagreement /= unit_;
    plan.cost = costs_.cost_of(plan.rounds, plan.shards, bytes_);
    if (replicas_.has_regions()) plan.replicas = replicas_.groups();
    plan.inside = inside_cost(plan.replicas, topology_, bytes_);
    return plan;
  }

  const Topology& topology_;
  const Replicas replicas_;
  const double bytes_;
  const int group_limit_;
  CostBook costs_;
  const double unit_;  // of S, the noise of one replica, in terms of one worker's, in which the search counts
  std::optional<NestedSearch> nested_;
  std::optional<LimitedSearch> limited_;
};

Planner::Planner(const Topology& topology, double bytes, int group_limit, const std::vector<Group>& replicas) {
  if (!(bytes > 0) || !std::isfinite(bytes)) {
    throw InputError(fmt::format("cannot plan for {} bytes; expected a positive number", bytes));
  }
  if (group_limit < 0 || group_limit == 1) {
    throw InputError(
        fmt::format("cannot plan for groups of at most {}; expected 2 or more, or 0 for no limit", group_limit));
  }
  search_ = std::make_unique<Search>(topology, bytes, group_limit, replicas);
}

Planner::~Planner() = default;

std::optional<Plan> Planner::best(double disagreement) {
  if (!(disagreement >= 0)) {
    throw InputError(fmt::format("cannot plan for a disagreement of {}; expected a number of 0 or more", disagreement));
  }
  return search_->best(disagreement);
}

Plan Planner::require(double disagreement) {
  if (std::optional<Plan> plan = best(disagreement)) return *std::move(plan);
  throw InputError(
      fmt::format("groups of at most {} cannot keep the disagreement within {}; the smallest that they allow is {:.3g}",
                  search_->group_limit(), disagreement, smallest_disagreement()));
}

double Planner::smallest_disagreement() { return search_->smallest_disagreement(); }

Plan Planner::published() { return search_->published(); }

}  // namespace dssync
