#include "dssync/monitor/policy.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr int kQuiet = 16;  // memories without a change after which one of them is forgotten
// A mean over many iterations is no noise, and it misses some of what is slow only for a moment: half the gain will do.
constexpr double kSteady = 0.5;
constexpr int kWaveTurns = 3;         // of contention that comes and goes
constexpr double kSwing = 1.1;        // slower or faster than on average, or it is no turn
constexpr std::size_t kKinds = 3;     // of networks that it leaves
constexpr double kNoticeable = 1.05;  // of capacities
// A change is on trial for so many iterations. If they take this much longer than those before it, it was a mistake:
// the plan before comes back, and for a while nothing is done about a network that looks like the one that misled us.
constexpr std::int64_t kTrial = 5;
constexpr double kWorse = 1.2;
constexpr std::int64_t kLesson = 128;  // iterations
constexpr double kAlike = 1.5;         // capacities
// A link that seems to be faster than the plan in force assumes must have shown this part of it lately, before another
// plan relies on it; but a proof is awaited for so many iterations at most.
constexpr double kProof = 0.5;
constexpr std::int64_t kProofPatience = 8;
constexpr std::size_t kKnown = 8;  // plans that are remembered
constexpr std::size_t kNamedLinks = 4;
constexpr double kMentioned = 0.1;  // of a link that others use

bool same_capacities(const Topology& a, const Topology& b) {
  return std::equal(a.links().begin(), a.links().end(), b.links().begin(),
                    [](const Link& x, const Link& y) { return x.capacity == y.capacity; });
}

bool alike(const Link& a, const Link& b, double most = kAlike) {
  const double fold = a.capacity.bytes_per_second / b.capacity.bytes_per_second;
  return fold < most && fold * most > 1;
}

bool alike(const Topology& a, const Topology& b, double most = kAlike) {
  return std::equal(a.links().begin(), a.links().end(), b.links().begin(),
                    [most](const Link& x, const Link& y) { return alike(x, y, most); });
}

// Whether the network is another one than the plan was made for, so that its times say nothing about the change. A
// link that had become slow and is slower still is no proof of that: a flow takes all that the new plan leaves to it.
bool is_another(const Topology& network, const Topology& planned, const Topology& before) {
  for (std::size_t link = 0; link < network.links().size(); ++link) {
    const Link& now = network.links()[link];
    const Link& then = planned.links()[link];
    const bool worse = now.capacity < then.capacity && then.capacity < before.links()[link].capacity;
    if (!alike(now, then) && !worse) return true;
  }
  return false;
}

// "all x3, pairs in rack0 x2; float32/int4", in the order of their first turns; codecs where there are any.
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
  return plan.codecs.is_float32() ? text : fmt::format("{}; {}", text, name_of(plan.codecs));
}

std::string text_of(const std::vector<PlanChange::LinkChange>& changes, const Topology& network) {
  std::string text;
  for (std::size_t i = 0; i < changes.size() && i < kNamedLinks; ++i) {
    text += fmt::format("{}{} {} -> {}", i == 0 ? "" : ", ", network.link(changes[i].link).name,
                        format_bandwidth(changes[i].from), format_bandwidth(changes[i].to));
    const bool is_slower = changes[i].to < changes[i].from;
    if (is_slower && changes[i].others.bytes_per_second > kMentioned * changes[i].from.bytes_per_second) {
      text += fmt::format(" (others send {})", format_bandwidth(changes[i].others));
    }
  }
  if (changes.size() > kNamedLinks) text += fmt::format(" and {} more links", changes.size() - kNamedLinks);
  return text.empty() ? "no link changed" : text;
}

}  // namespace

// A plan for some network.
struct ReplanPolicy::Candidate {
  Topology network;
  std::optional<Plan> plan;
  std::shared_ptr<const StageTable> table;  // where there is a plan
};

// What the policy remembers.
struct ReplanPolicy::State {
  Plan plan;                                // in force
  std::shared_ptr<const StageTable> table;  // its stages, on the network that it was made for
  std::shared_ptr<const StageTable> first;  // of the first plan
  bool pending = false;                     // a change was answered and not adopted yet
  bool unrest = false;                      // ... because of the network
  int doublings = 0;                        // of the memory
  std::int64_t calm_since = 0;              // the last change, or the last doubling that was forgotten
  double credit = 0;
  std::optional<std::int64_t> awaiting_since;  // a proof
  std::int64_t wave = 0;                       // iterations since contention began to come and go; 0: it does not

  // What the last change left, while it is on trial.
  struct Before {
    Plan plan;
    std::shared_ptr<const StageTable> table;
    double seconds;  // that an iteration took
  };
  std::optional<Before> before;
  std::optional<Topology> misled_by;  // what a change that was taken back was made for
  std::int64_t misled_at = 0;
  double without_it = 0;  // seconds that an iteration took before that change

  struct Past {
    std::int64_t iteration;
    double seconds;                           // that it took
    std::shared_ptr<const Topology> network;  // as it was, as far as is known; equal ones are the same
  };
  std::deque<Past> past;  // ascending
  double elapsed = 0;     // seconds that are in it, or were before they were forgotten

  std::deque<std::shared_ptr<const Candidate>> known;  // those asked for last first
};

ReplanPolicy::ReplanPolicy(PlanFunction plan, double bytes, const PolicyOptions& options)
    : plan_(std::move(plan)), bytes_(bytes), options_(options), state_(std::make_unique<State>()) {}

ReplanPolicy::~ReplanPolicy() = default;

void ReplanPolicy::adopt(std::int64_t iteration, const Plan& plan, std::shared_ptr<const StageTable> table) {
  state_->plan = plan;
  state_->table = std::move(table);
  if (!state_->first) state_->first = state_->table;
  state_->credit = 0;
  state_->awaiting_since.reset();
  ++changes_;
  if (state_->unrest) ++state_->doublings;
  state_->pending = state_->unrest = false;
  state_->calm_since = iteration;
}

const Plan& ReplanPolicy::plan() const { return state_->plan; }

std::shared_ptr<const StageTable> ReplanPolicy::table() const { return state_->table; }

// That the plan in force was made for.
const Topology& ReplanPolicy::planned_network() const { return state_->table->network(); }

bool ReplanPolicy::needs_probe(const LinkMonitor& monitor) const {
  const bool may_follow = state_->wave == 0 && monitor.recovering();
  return monitor.undecided() || monitor.relapsing() || state_->awaiting_since || may_follow;
}

bool ReplanPolicy::on_trial() const { return state_->before.has_value(); }

std::int64_t ReplanPolicy::memory() const {
  const double iterations = options_.memory_iterations * std::exp2(state_->doublings);
  return static_cast<std::int64_t>(std::min<double>(options_.longest_memory, iterations));
}

double ReplanPolicy::iteration_seconds(const StageTable& table, const Topology& network, double compute) const {
  const double averages = table.seconds_per_iteration(network);
  return options_.overlap ? std::max(averages, compute) : averages + compute;
}

void ReplanPolicy::remember(const LinkMonitor& monitor) {
  const std::int64_t iteration = monitor.last_iteration();
  std::deque<State::Past>& past = state_->past;
  if (iteration < 0 || (!past.empty() && past.back().iteration == iteration)) return;
  auto network = std::make_shared<const Topology>(monitor.likely());
  if (!past.empty() && same_capacities(*past.back().network, *network)) {
    network = past.back().network;
  } else if (!past.empty()) {
    past.back().network = network;  // two of three iterations tell of it: the one before was like this, too
  }
  const double elapsed = monitor.elapsed_seconds(options_.overlap);
  past.push_back({iteration, elapsed - std::exchange(state_->elapsed, elapsed), network});
  const std::int64_t longest = std::max(options_.longest_memory, options_.wave_iterations);
  while (past.front().iteration <= iteration - longest) past.pop_front();
  if (iteration - state_->calm_since > kQuiet * memory() && state_->doublings > 0) {
    --state_->doublings;
    state_->calm_since = iteration;
  }
}

// What an iteration would take on average in the time of the last iterations. Contention comes and goes by the clock:
// what it slows down counts for as long as it lasts, not for the few iterations that there were meanwhile.
double ReplanPolicy::remembered_seconds(const StageTable& table, std::int64_t iterations, double compute) const {
  double time = 0;
  double count = 0;
  for_each_network(iterations, [&](const Topology& network, double seconds, std::int64_t /*first*/) {
    time += seconds;
    count += seconds / iteration_seconds(table, network, compute);
  });
  return time / count;
}

// Of the last iterations: what the network was like, for how long, and from which one on.
template <typename Action>
void ReplanPolicy::for_each_network(std::int64_t iterations, Action action) const {
  const std::deque<State::Past>& past = state_->past;
  const auto is_older = [&](const State::Past& entry) { return entry.iteration <= past.back().iteration - iterations; };
  for (auto first = std::find_if_not(past.begin(), past.end(), is_older); first != past.end();) {
    double seconds = 0;
    auto end = first;
    for (; end != past.end() && end->network == first->network; ++end) seconds += end->seconds;
    if (seconds > 0) action(*first->network, seconds, first->iteration);
    first = end;
  }
}

// For this network, or one that is hardly different: to plan takes CPU time, and means over time change all the time.
std::shared_ptr<const ReplanPolicy::Candidate> ReplanPolicy::ask(const Topology& network) {
  std::deque<std::shared_ptr<const Candidate>>& known = state_->known;
  const auto found = std::find_if(known.begin(), known.end(), [&](const std::shared_ptr<const Candidate>& candidate) {
    return alike(candidate->network, network, kNoticeable);
  });
  std::shared_ptr<const Candidate> candidate;
  if (found != known.end()) {
    candidate = *found;
    known.erase(found);
  } else {
    std::optional<Plan> plan = plan_(network);
    std::shared_ptr<const StageTable> table;
    if (plan)
      table = std::make_shared<StageTable>(plan->rounds, plan->shards, network, bytes_, plan->replicas, plan->codecs);
    candidate = std::make_shared<Candidate>(Candidate{network, std::move(plan), std::move(table)});
  }
  known.push_front(candidate);
  if (known.size() > kKnown) known.pop_back();
  return candidate;
}

// REQUIRES: a change is on trial.
std::optional<PlanChange> ReplanPolicy::regret(const LinkMonitor& monitor) {
  const std::int64_t age = monitor.last_iteration() - state_->calm_since + 1;
  if (age < kTrial) return std::nullopt;
  const double now = monitor.iteration_seconds(options_.overlap);
  const bool is_worse = now > kWorse * state_->before->seconds;
  const Topology network = monitor.estimated();
  // What slows it down may not have been found yet: whether that is the plan or the network is not to be told before.
  const double explained = iteration_seconds(*state_->table, network, monitor.compute_seconds());
  if (is_worse && now > kWorse * explained && age < 2 * kTrial) return std::nullopt;
  const State::Before before = *std::exchange(state_->before, std::nullopt);
  if (!is_worse || is_another(network, planned_network(), before.table->network())) return std::nullopt;
  state_->misled_by = planned_network();
  state_->misled_at = monitor.last_iteration();
  state_->without_it = before.seconds;
  state_->pending = state_->unrest = true;
  return PlanChange{
      .plan = before.plan,
      .network = before.table->network(),
      .table = before.table,
      .iteration = monitor.last_iteration() + 1,
      .seconds_before = now,
      .seconds_after = before.seconds,
      .explanation =
          fmt::format("{} per iteration instead of {} before the last change; back to the plan before ({})",
                      format_duration(Seconds(now)), format_duration(Seconds(before.seconds)), rounds_of(before.plan))};
}

// If a change was taken back and that did not help, it was the network: nothing is to be learned from it.
void ReplanPolicy::forget_wrong_lesson(const LinkMonitor& monitor) {
  if (!state_->misled_by || monitor.last_iteration() - state_->misled_at >= kLesson) return;
  const bool is_back = monitor.last_iteration() - state_->calm_since + 1 >= kTrial;
  const bool is_slow = monitor.iteration_seconds(options_.overlap) > kWorse * state_->without_it;
  if (is_back && is_slow) state_->misled_by.reset();
}

// Whether a change was taken back a moment ago, or was made for a network much like this one.
bool ReplanPolicy::is_ruled_out(const LinkMonitor& monitor) const {
  if (!state_->misled_by) return false;
  const std::int64_t since = monitor.last_iteration() - state_->misled_at;
  return since < 2 * kTrial || (since < kLesson && alike(monitor.estimated(), *state_->misled_by));
}

// Whether links that seem to have become faster were seen to be, lately, or have not shown it since long: a plan that
// spares them does not tell.
bool ReplanPolicy::is_proven(const LinkMonitor& monitor, std::optional<std::int64_t> since) {
  bool proven = true;
  for (std::size_t link = 0; link < monitor.estimates().size(); ++link) {
    const LinkEstimate& estimate = monitor.estimates()[link];
    const double assumed = planned_network().links()[link].capacity.bytes_per_second;
    const bool relies_on_it = estimate.capacity.bytes_per_second > kAlike * assumed;
    if (relies_on_it && estimate.low.bytes_per_second < kProof * estimate.capacity.bytes_per_second) proven = false;
  }
  if (proven) return true;
  state_->awaiting_since = since.value_or(monitor.last_iteration());
  return monitor.last_iteration() - *state_->awaiting_since >= kProofPatience;
}

// What the candidate saves now and over the memory: the lesser of the two.
double ReplanPolicy::gain_now(const Candidate& candidate, const Topology& network, double compute) const {
  const std::int64_t iterations = std::max(memory(), state_->wave);
  const auto gain = [](double after, double before) { return 1 - after / before; };
  return std::min(
      gain(iteration_seconds(*candidate.table, network, compute), iteration_seconds(*state_->table, network, compute)),
      gain(remembered_seconds(*candidate.table, iterations, compute),
           remembered_seconds(*state_->table, iterations, compute)));
}

// If contention comes and goes, and so will go on: how many iterations ago it began. Otherwise 0. As the first plan
// would feel it, since the one in force may have been made so that it does not.
std::int64_t ReplanPolicy::wave_iterations(double compute) const {
  const double mean = remembered_seconds(*state_->first, options_.wave_iterations, compute);
  int turns = 0;
  std::optional<bool> slow;
  std::int64_t begin = 0;
  for_each_network(options_.wave_iterations, [&](const Topology& network, double /*seconds*/, std::int64_t first) {
    const double seconds = iteration_seconds(*state_->first, network, compute);
    if (seconds < kSwing * mean && seconds * kSwing > mean) return;
    const bool is_slow = seconds > mean;
    if (slow && *slow != is_slow && turns++ == 0) begin = first;
    slow = is_slow;
  });
  return turns < kWaveTurns ? 0 : state_->past.back().iteration - begin + 1;
}

// Time is what counts, so the mean is one of seconds per byte.
Topology ReplanPolicy::mean_network(std::int64_t iterations) const {
  std::vector<double> sums(planned_network().links().size(), 0);
  double time = 0;
  for_each_network(iterations, [&](const Topology& network, double seconds, std::int64_t /*first*/) {
    for (std::size_t link = 0; link < sums.size(); ++link) {
      sums[link] += seconds / network.links()[link].capacity.bytes_per_second;
    }
    time += seconds;
  });
  std::vector<Bandwidth> mean;
  for (const double sum : sums) mean.push_back({time / sum});
  return planned_network().with_capacities(mean);
}

// Those that lasted longest, one of each kind.
std::vector<Topology> ReplanPolicy::usual_networks(std::int64_t iterations) const {
  std::vector<std::pair<double, const Topology*>> kinds;
  for_each_network(iterations, [&](const Topology& network, double seconds, std::int64_t /*first*/) {
    const auto known =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return alike(*kind.second, network); });
    if (known == kinds.end()) {
      kinds.emplace_back(seconds, &network);
    } else {
      known->first += seconds;
    }
  });
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Topology> networks;
  for (std::size_t i = 0; i < std::min(kinds.size(), kKinds); ++i) networks.push_back(*kinds[i].second);
  return networks;
}

// The plan that would have been best in these iterations, if it is enough better than the one in force.
std::shared_ptr<const ReplanPolicy::Candidate> ReplanPolicy::best_on_average(std::int64_t iterations, double compute) {
  std::vector<Topology> networks = usual_networks(iterations);
  networks.insert(networks.begin(), mean_network(iterations));
  double least = (1 - kSteady * options_.least_gain) * remembered_seconds(*state_->table, iterations, compute);
  std::shared_ptr<const Candidate> best;
  for (const Topology& network : networks) {
    const std::shared_ptr<const Candidate> candidate = ask(network);
    if (!candidate->plan) continue;
    const double seconds = remembered_seconds(*candidate->table, iterations, compute);
    if (seconds > least) continue;
    least = seconds;
    best = candidate;
  }
  return best;
}

std::optional<PlanChange> ReplanPolicy::consider(const LinkMonitor& monitor) {
  if (monitor.last_iteration() < 0) return std::nullopt;
  if (state_->pending) return std::nullopt;
  if (state_->before) return regret(monitor);
  const std::optional<std::int64_t> awaiting_since = std::exchange(state_->awaiting_since, std::nullopt);
  const double compute = monitor.compute_seconds();
  state_->wave = wave_iterations(compute);
  forget_wrong_lesson(monitor);
  if (!is_ruled_out(monitor) && !monitor.undecided() && !monitor.recovering()) {
    const Topology network = monitor.estimated();
    const std::shared_ptr<const Candidate> now = ask(network);
    const double gain = now->plan ? gain_now(*now, network, compute) : 0;
    state_->credit = gain >= options_.least_gain ? state_->credit + gain : 0;
    if (state_->credit >= options_.patience && is_proven(monitor, awaiting_since)) {
      state_->unrest = true;
      state_->before = {state_->plan, state_->table, monitor.iteration_seconds(options_.overlap)};
      return propose(monitor, *now, "");
    }
  }
  if (state_->wave == 0) return std::nullopt;
  const std::shared_ptr<const Candidate> best = best_on_average(state_->wave, compute);
  if (!best) return std::nullopt;
  state_->unrest = true;
  return propose(monitor, *best, "contention comes and goes: ");
}

std::optional<PlanChange> ReplanPolicy::plan_anew(const LinkMonitor& monitor, const std::string& reason) {
  state_->known.clear();
  if (state_->pending) return std::nullopt;
  const std::shared_ptr<const Candidate> now = ask(monitor.estimated());
  if (!now->plan || (now->plan->rounds == state_->plan.rounds && now->plan->shards == state_->plan.shards)) {
    return std::nullopt;
  }
  state_->before.reset();  // it may well be slower
  return propose(monitor, *now, reason + ": ");
}

PlanChange ReplanPolicy::propose(const LinkMonitor& monitor, const Candidate& candidate, const std::string& reason) {
  state_->pending = true;
  const double compute = monitor.compute_seconds();
  PlanChange result{.plan = *candidate.plan,
                    .network = candidate.network,
                    .table = candidate.table,
                    .iteration = monitor.last_iteration() + 1,
                    .seconds_before = iteration_seconds(*state_->table, candidate.network, compute),
                    .seconds_after = iteration_seconds(*candidate.table, candidate.network, compute)};
  for (std::size_t link = 0; link < result.network.links().size(); ++link) {
    const Bandwidth from = planned_network().links()[link].capacity;
    const Bandwidth to = result.network.links()[link].capacity;
    const double fold = from.bytes_per_second / to.bytes_per_second;
    if (fold > kNoticeable || fold * kNoticeable < 1) {
      result.links.push_back({static_cast<LinkId>(link), from, to, monitor.estimates()[link].others});
    }
  }
  result.explanation =
      fmt::format("{}{}; new plan ({}) for {} instead of {} per iteration", reason,
                  text_of(result.links, result.network), rounds_of(result.plan),
                  format_duration(Seconds(result.seconds_after)), format_duration(Seconds(result.seconds_before)));
  return result;
}

}  // namespace dssync
