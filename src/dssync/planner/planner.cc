// The planner's front: checks the request, picks the search, measures what it found.
#include "dssync/planner/planner.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"
#include "dssync/planner/codec_error.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/limited_search.h"
#include "dssync/planner/nested_search.h"
#include "dssync/planner/rounds.h"
#include "dssync/planner/tuning.h"
#include "dssync/topology/levels.h"

namespace dssync {

int Plan::replica_count() const {
  if (!replicas.empty()) return static_cast<int>(replicas.size());
  std::size_t workers = 0;
  for (const Group& group : rounds.front().groups) workers += group.size();
  return static_cast<int>(workers);
}

namespace {

// Everything that is worked out for one choice of codecs. The topology and the replicas must outlive it.
class CodecSearch {
 public:
  CodecSearch(const Topology& topology, const Replicas& replicas, std::shared_ptr<LoweringBook> lowerings, double bytes,
              int group_limit, Codecs codecs)
      : topology_(topology),
        replicas_(replicas),
        bytes_(bytes),
        group_limit_(group_limit),
        codecs_(std::move(codecs)),
        costs_(topology, std::move(lowerings), codecs_) {}

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
    plan.cost = costs_.cost_of(plan.rounds, plan.shards, bytes_);
    if (replicas_.has_regions()) plan.replicas = replicas_.groups();
    plan.inside = inside_cost(plan.replicas, topology_, bytes_);
    plan.codecs = codecs_;
    if (!codecs_.is_float32()) {
      const double shard = bytes_ / plan.shards;
      plan.codec_disagreement =
          codec_disagreement(plan.rounds, replicas_, plan.mixing.steady_disagreement,
                             [&](const Group& group) -> const Lowering& { return costs_.lowering_of(group, shard); });
    }
    return plan;
  }

 private:
  const Topology& topology_;
  const Replicas& replicas_;
  const double bytes_;
  const int group_limit_;
  const Codecs codecs_;
  CostBook costs_;
  std::optional<NestedSearch> nested_;
  std::optional<LimitedSearch> limited_;
};

}  // namespace

class Planner::Search {
 public:
  Search(const Topology& topology, double bytes, int group_limit, const std::vector<Group>& replicas,
         const CodecChoice& choice)
      : topology_(topology),
        replicas_(topology, replicas),
        lowerings_(std::make_shared<LoweringBook>(topology, replicas_)),
        bytes_(bytes),
        group_limit_(group_limit),
        choice_(choice),
        levels_(top_level(topology)) {
    if (is_limited()) check_reference(false);
  }

  int group_limit() const { return group_limit_; }
  bool is_limited() const { return group_limit_ != 0 && group_limit_ < replicas_.count(); }

  std::optional<Plan> best(double limit) {
    shares_.clear();
    if (choice_.codec) return within(limit, everywhere(*choice_.codec), kNone);
    std::optional<Plan> plan = within(limit, {}, kNone);
    // A limit of 0 asks for exact averages. Where no link is used, nothing is faster.
    if (!plan || limit <= 0 || plan->cost.seconds_per_iteration <= 0) return plan;
    return in_best_codecs(*std::move(plan), !is_limited(),
                          [&](const Codecs& codecs, int length) { return within(limit, codecs, length); });
  }

  double smallest_disagreement() { return is_limited() ? search_of({}).limited().smallest_disagreement() : 0; }

  Plan published() {
    const int root = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(replicas_.count())) - 1e-9));
    const int group = group_limit_ != 0 ? group_limit_ : std::max(2, root);
    Schedule rounds;
    for (const Division& division : mixing_rounds(replicas_.count(), group)) {
      rounds.push_back(make_round(division, replicas_));
    }
    if (rounds.empty()) {  // a single replica
      rounds.push_back(make_round({}, replicas_));
    }
    return follow(rounds, 1);
  }

  Plan follow(const Schedule& rounds, int shards) {
    const bool has_common = has_reference(rounds);
    check_reference(has_common);
    const auto measured = [&](const Codecs& codecs, int) {
      return std::optional(search_of(codecs).measure({rounds, shards}));
    };
    if (choice_.codec) return *measured(everywhere(*choice_.codec), kNone);
    Plan plan = *measured({}, kNone);
    return plan.cost.seconds_per_iteration > 0 ? in_best_codecs(std::move(plan), has_common, measured) : plan;
  }

 private:
  Codecs everywhere(Codec codec) const { return Codecs(codec, choice_.bytes_per_second); }

  void check_reference(bool has_common) const {
    if (has_common || !choice_.codec || *choice_.codec < Codec::kInt8 || replicas_.count() < 2) return;
    throw InputError(
        fmt::format("{} sends differences to what everyone has averaged, but there is no round in which everyone does; "
                    "expected bfloat16 or float32, or no group limit",
                    name_of(*choice_.codec)));
  }

  CodecSearch& search_of(const Codecs& codecs) {
    std::unique_ptr<CodecSearch>& search = searches_[codecs];
    if (!search) search = std::make_unique<CodecSearch>(topology_, replicas_, lowerings_, bytes_, group_limit_, codecs);
    return *search;
  }

  // Of any length, or of this one.
  std::optional<Plan> scheduled(CodecSearch& search, double limit, int length) {
    std::optional<Found> found;
    if (is_limited()) {
      // Bits that are the same on all levels make all schedules faster alike.
      found = search_of({}).limited().best(limit);
    } else {
      found = length == kNone ? search.nested().best(limit) : search.nested().best_of_length(limit, length);
    }
    return found ? std::optional(search.measure(*std::move(found))) : std::nullopt;
  }

  // The fastest plan whose schedule and codecs together are within the limit. What codecs add hardly changes from a
  // schedule to one that is a little tighter, so that a few of them are enough.
  std::optional<Plan> within(double limit, const Codecs& codecs, int length) {
    CodecSearch& search = search_of(codecs);
    double& share = shares_[codecs];
    double room = limit * (1 - share);
    for (int step = 0; step < kMostSteps; ++step) {
      std::optional<Plan> plan = scheduled(search, room, length);
      if (!plan) return std::nullopt;
      if (plan->disagreement() <= limit + kSearchTolerance) return plan;
      share = std::max(share, plan->codec_disagreement / limit * kMargin);
      room = std::max(0.0, limit - plan->codec_disagreement * std::pow(kMargin, step + 1));
    }
    return scheduled(search, 0, kNone);  // where everyone averages in every iteration, all have the same errors
  }

  // From a plan in float32 to one in the codecs that take least time: few bits on every level or none at first, then
  // level by level. `evaluate` makes the best plan with some codecs, of any length or of the one given.
  template <typename Evaluate>
  Plan in_best_codecs(Plan plan, bool has_common, Evaluate evaluate) {
    const std::vector<Codec> known = has_common ? std::vector{Codec::kFloat32, Codec::kInt8, Codec::kInt4}
                                                : std::vector{Codec::kFloat32, Codec::kBfloat16};
    std::vector<Codec> chosen(index(levels_) + 1, Codec::kFloat32);
    const auto consider = [&](const std::vector<Codec>& codecs, int length) {
      const std::optional<Plan> other = evaluate(Codecs(codecs, choice_.bytes_per_second), length);
      if (!other || !is_better(*other, plan)) return;
      plan = *other;
      chosen = codecs;
    };
    // Inside of hosts there is no link to spare.
    std::vector<Codec> shortest(chosen.size(), known.back());
    shortest.front() = Codec::kFloat32;
    consider(shortest, kNone);
    if (!has_common) return plan;
    const std::vector<Codec> before = chosen;
    for (int level = levels_; level > 0; --level) {
      for (const Codec codec : known) {
        if (codec == chosen[index(level)]) continue;
        std::vector<Codec> trial = chosen;
        trial[index(level)] = codec;
        if (trial != shortest) consider(trial, static_cast<int>(plan.rounds.size()));
      }
    }
    if (chosen != before) consider(chosen, kNone);
    return plan;
  }

  static double wire_bytes(const Plan& plan) {
    double sum = 0;
    for (const LinkUse& link : plan.cost.links) sum += link.bytes_per_iteration;
    return sum;
  }

  // Faster, by a little at least; of equally fast ones the one with less on the network.
  static bool is_better(const Plan& plan, const Plan& than) {
    const double now = plan.cost.seconds_per_iteration;
    const double before = than.cost.seconds_per_iteration;
    return now < before * kWorthwhileCodec ||
           (now <= before * (1 + kSearchTolerance) && wire_bytes(plan) < wire_bytes(than) * kWorthwhileCodec);
  }

  static constexpr int kMostSteps = 8;
  static constexpr double kMargin = 1.02;

  const Topology& topology_;
  const Replicas replicas_;
  const std::shared_ptr<LoweringBook> lowerings_;
  const double bytes_;
  const int group_limit_;
  const CodecChoice choice_;
  const int levels_;
  std::map<Codecs, std::unique_ptr<CodecSearch>> searches_;
  std::map<Codecs, double> shares_;  // of the limit that codecs take, while one limit is worked on
};

Planner::Planner(const Topology& topology, double bytes, int group_limit, const std::vector<Group>& replicas,
                 const CodecChoice& codecs) {
  if (!(bytes > 0) || !std::isfinite(bytes)) {
    throw InputError(fmt::format("cannot plan for {} bytes; expected a positive number", bytes));
  }
  if (group_limit < 0 || group_limit == 1) {
    throw InputError(
        fmt::format("cannot plan for groups of at most {}; expected 2 or more, or 0 for no limit", group_limit));
  }
  search_ = std::make_unique<Search>(topology, bytes, group_limit, replicas, codecs);
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

Plan Planner::follow(const Schedule& rounds, int shards) { return search_->follow(rounds, shards); }

}  // namespace dssync
