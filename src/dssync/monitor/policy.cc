#include "dssync/monitor/policy.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr int kQuiet = 4;             // memories without a change after which one of them is forgotten
constexpr double kNoticeable = 1.05;  // of capacities
constexpr std::size_t kNamedLinks = 4;

bool same_capacities(const Topology& a, const Topology& b) {
  return std::equal(a.links().begin(), a.links().end(), b.links().begin(),
                    [](const Link& x, const Link& y) { return x.capacity == y.capacity; });
}

// "all x3, pairs in rack0 x2", in the order of their first turns.
std::string rounds_of(const Plan& plan) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Round& round : plan.rounds) {
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == round.label; });
    if (known == counts.end()) {
      counts.emplace_back(round.label, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [label, count] : counts) {
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", label, count > 1 ? fmt::format(" x{}", count) : "");
  }
  return text;
}

std::string text_of(const std::vector<PlanChange::LinkChange>& changes, const Topology& network) {
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < kNamedLinks; ++i) {
    text += fmt::format("{}{} {} -> {}", i == 0 ? "" : ", ", network.link(changes[i].link).name,
                        format_bandwidth(changes[i].from), format_bandwidth(changes[i].to));
  }
  if (changes.size() > kNamedLinks) text += fmt::format(" and {} more links", changes.size() - kNamedLinks);
  return text.empty() ? "no link changed" : text;
}

}  // namespace

// What the policy remembers.
struct ReplanPolicy::Era {
  std::shared_ptr<const StageTable> table;
  std::optional<Topology> network;  // that the plan in force was made for
  bool pending = false;             // a change was answered and not adopted yet
  int doublings = 0;                // of the memory
  std::int64_t calm_since = 0;
  double credit = 0;

  struct Past {
    std::int64_t until;  // the last iteration with these estimates
    Topology network;
  };
  std::deque<Past> past;  // ascending

  std::optional<Topology> planned_on;  // the last network that a plan was asked for, and the answer
  std::optional<Plan> candidate;
  std::shared_ptr<const StageTable> candidate_table;
};

ReplanPolicy::ReplanPolicy(PlanFunction plan, double bytes, const PolicyOptions& options)
    : plan_(std::move(plan)), bytes_(bytes), options_(options), era_(std::make_unique<Era>()) {}

ReplanPolicy::~ReplanPolicy() = default;

void ReplanPolicy::adopt(std::int64_t iteration, const Plan& plan, const Topology& network) {
  era_->table = std::make_shared<StageTable>(plan.rounds, plan.shards, network, bytes_);
  era_->network = network;
  era_->credit = 0;
  if (++changes_ > 0 && era_->pending) ++era_->doublings;
  era_->pending = false;
  era_->calm_since = iteration;
}

std::shared_ptr<const StageTable> ReplanPolicy::table() const { return era_->table; }

void ReplanPolicy::forget_candidate() { era_->planned_on.reset(); }

std::int64_t ReplanPolicy::memory() const {
  const double iterations = options_.memory_iterations * std::exp2(era_->doublings);
  return static_cast<std::int64_t>(std::min<double>(options_.longest_memory, iterations));
}

double ReplanPolicy::iteration_seconds(const StageTable& table, const Topology& network, double compute) const {
  const double averages = table.seconds_per_iteration(network);
  return options_.overlap ? std::max(averages, compute) : averages + compute;
}

void ReplanPolicy::remember(std::int64_t iteration, const Topology& network) {
  std::deque<Era::Past>& past = era_->past;
  if (!past.empty() && same_capacities(past.back().network, network)) {
    past.back().until = iteration;
  } else {
    past.push_back({iteration, network});
  }
  while (past.front().until <= iteration - options_.longest_memory) past.pop_front();
  if (iteration - era_->calm_since > kQuiet * memory() && era_->doublings > 0) {
    --era_->doublings;
    era_->calm_since = iteration;
  }
}

// The mean over the memory.
double ReplanPolicy::remembered_seconds(const StageTable& table, double compute) const {
  std::int64_t until = era_->past.back().until;
  const std::int64_t start = until - memory();
  double sum = 0;
  double iterations = 0;
  for (auto past = era_->past.rbegin(); past != era_->past.rend() && until > start; ++past) {
    const auto next = std::next(past);
    const std::int64_t before = next == era_->past.rend() ? start : std::max(start, next->until);
    const auto length = static_cast<double>(until - before);
    sum += length * iteration_seconds(table, past->network, compute);
    iterations += length;
    until = before;
  }
  return sum / std::max(1.0, iterations);
}

bool ReplanPolicy::find_candidate(const Topology& network) {
  if (!era_->planned_on || !same_capacities(*era_->planned_on, network)) {
    era_->planned_on = network;
    era_->candidate = plan_(network);
    era_->candidate_table.reset();
    if (era_->candidate) {
      era_->candidate_table =
          std::make_shared<StageTable>(era_->candidate->rounds, era_->candidate->shards, network, bytes_);
    }
  }
  return era_->candidate.has_value();
}

std::optional<PlanChange> ReplanPolicy::consider(const LinkMonitor& monitor) {
  if (era_->pending || monitor.last_iteration() < 0) return std::nullopt;
  const Topology network = monitor.estimated();
  remember(monitor.last_iteration(), network);
  if (!find_candidate(network)) return std::nullopt;
  const double compute = monitor.compute_seconds();
  const double before = iteration_seconds(*era_->table, network, compute);
  const double after = iteration_seconds(*era_->candidate_table, network, compute);
  const double remembered_before = remembered_seconds(*era_->table, compute);
  const double remembered_after = remembered_seconds(*era_->candidate_table, compute);
  const double gain = std::min(1 - after / before, 1 - remembered_after / remembered_before);
  if (!(gain >= options_.least_gain)) {
    era_->credit = 0;
    return std::nullopt;
  }
  era_->credit += gain;
  if (era_->credit < options_.patience) return std::nullopt;
  era_->pending = true;
  return change(monitor, before, after);
}

PlanChange ReplanPolicy::change(const LinkMonitor& monitor, double before, double after) const {
  PlanChange result{*era_->candidate, *era_->planned_on, monitor.last_iteration(), before, after, {}, ""};
  for (std::size_t link = 0; link < result.network.links().size(); ++link) {
    const Bandwidth from = era_->network->links()[link].capacity;
    const Bandwidth to = result.network.links()[link].capacity;
    const double fold = from.bytes_per_second / to.bytes_per_second;
    if (fold > kNoticeable || fold * kNoticeable < 1) {
      result.links.push_back({static_cast<LinkId>(link), from, to});
    }
  }
  result.explanation = fmt::format("{}; new plan ({}) for {} instead of {} per iteration",
                                   text_of(result.links, result.network), rounds_of(result.plan), result.plan.shards,
                                   format_duration(Seconds(after)), format_duration(Seconds(before)));
  return result;
}

}  // namespace dssync
