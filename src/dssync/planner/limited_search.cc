// The search under a group limit.
#include "dssync/planner/limited_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "dssync/base/index.h"
#include "dssync/planner/cadence.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/rounds.h"

namespace dssync {
namespace {

// Up to this many workers divisions are improved by exchanges; beyond this many, fewer recipes are tried.
constexpr int kFewWorkers = 10;
constexpr int kManyWorkers = 256;
// What mixes more slowly than this takes too long to estimate, so beyond kMeasuredWorkers it is left out.
constexpr double kSlowMixing = 0.9;

// How things that are too many for one group are shuffled.
enum class Shuffle {
  kGrid,       // mixing_rounds: exact where that is possible
  kFewGroups,  // the fewest groups: neighbours, then dealt out, then dealt out askew
  kStrides,    // the fewest groups along the circle of all things, with growing strides
};

// One member of the family.
struct Recipe {
  int group = 2;  // the largest group to use
  Shuffle shuffle = Shuffle::kGrid;
  bool all_cross = false;  // all workers of a region cross at once, in lanes; otherwise those of one lane
  int inner_repeats = 1;   // how often the inner rounds of a region come before regions meet
  int depth = 0;           // how deep the tree of regions is followed; 0: the network is taken as flat

  auto operator<=>(const Recipe&) const = default;
};

// Cuts a sequence into `groups` pieces of nearly equal size.
Division cut(const std::vector<int>& sequence, int groups) {
  Division division(index(groups));
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    division[i * index(groups) / sequence.size()].push_back(sequence[i]);
  }
  return division;
}

// n > g things in the fewest groups. Neighbours and a deal mix exactly if every group of the one meets every group of
// the other equally; the askew deal helps where groups are too small for that.
std::vector<Division> few_groups(int n, int g) {
  const int groups = (n + g - 1) / g;
  std::vector<int> neighbours;
  std::vector<int> dealt;
  std::vector<int> askew;
  for (int i = 0; i < n; ++i) {
    neighbours.push_back(i);
  }
  const Division rows = cut(neighbours, groups);
  for (int hand = 0; hand < groups; ++hand) {
    for (int i = hand; i < n; i += groups) {
      dealt.push_back(i);
    }
    for (int row = 0; row < groups; ++row) {
      const std::vector<int>& things = rows[index(row)];
      for (int i = (hand + row) % groups; i < static_cast<int>(things.size()); i += groups) {
        askew.push_back(things[index(i)]);
      }
    }
  }
  std::vector<Division> rounds{rows, cut(dealt, groups)};
  if (groups * groups > n) {
    rounds.push_back(cut(askew, groups));
  }
  return rounds;
}

// n > g things: pieces of the circle 0, s, 2s, ... for strides s = 1, g, g^2, ...; each time it starts a little further
// on.
std::vector<Division> strides(int n, int g) {
  std::vector<Division> rounds;
  int start = 0;
  for (std::int64_t power = 1; power < n; power *= g) {
    int stride = static_cast<int>(power);
    while (std::gcd(stride, n) != 1) {
      ++stride;
    }
    std::vector<int> circle;
    for (int i = 0; i < n; ++i) {
      circle.push_back(static_cast<int>((start + static_cast<std::int64_t>(i) * stride) % n));
    }
    rounds.push_back(cut(circle, (n + g - 1) / g));
    start += 1;
  }
  return rounds;
}

std::vector<Division> shuffled(int n, const Recipe& recipe) {
  if (n > recipe.group && recipe.shuffle == Shuffle::kFewGroups) {
    return few_groups(n, recipe.group);
  }
  if (n > recipe.group && recipe.shuffle == Shuffle::kStrides) {
    return strides(n, recipe.group);
  }
  return mixing_rounds(n, recipe.group);
}

// Follows a recipe on a tree of regions.
class Cook {
 public:
  Cook(std::vector<Region> regions, const Recipe& recipe) : regions_(std::move(regions)), recipe_(recipe) {}

  std::vector<Division> rounds() const { return rounds_of(regions_.front()); }

 private:
  std::vector<Division> rounds_of(const Region& region) const {
    if (static_cast<int>(region.members.size()) <= recipe_.group) {
      return region.members.size() > 1 ? std::vector<Division>{{region.members}} : std::vector<Division>{};
    }
    if (region.children.empty()) {
      return translate(shuffled(static_cast<int>(region.loose.size()), recipe_), singles(region.loose));
    }
    const std::vector<std::vector<int>> parts = parts_of(region);
    const std::vector<Division> inner = inner_rounds(region);
    std::size_t largest = 0;
    for (const std::vector<int>& part : parts) {
      largest = std::max(largest, part.size());
    }
    const int together = recipe_.group / static_cast<int>(largest);
    if (together >= 2) {  // several whole parts fit into one group
      Recipe of_parts = recipe_;
      of_parts.group = together;
      return joined(inner, translate(shuffled(static_cast<int>(parts.size()), of_parts), parts));
    }
    return with_delegates(inner, parts, static_cast<int>(largest), region.parent == kNone ? kMaxCycle : kMaxCycle / 8);
  }

  // The rounds of all child regions side by side, repeated; a region with fewer rounds starts over.
  std::vector<Division> inner_rounds(const Region& region) const {
    std::vector<std::vector<Division>> all;
    std::size_t length = 0;
    for (const int child : region.children) {
      all.push_back(rounds_of(regions_[index(child)]));
      length = std::max(length, all.back().size());
    }
    if (length * index(recipe_.inner_repeats) <= index(kMaxCycle) / 2) {
      length *= index(recipe_.inner_repeats);
    }
    std::vector<Division> merged(length);
    for (const std::vector<Division>& rounds : all) {
      for (std::size_t t = 0; t < length && !rounds.empty(); ++t) {
        const Division& division = rounds[t % rounds.size()];
        merged[t].insert(merged[t].end(), division.begin(), division.end());
      }
    }
    return merged;
  }

  // Inner rounds, then rounds in which some workers of each part meet those of the others while the rest goes on
  // inside; then the same with other delegates, until all have been or the cycle gets too long.
  std::vector<Division> with_delegates(const std::vector<Division>& inner, const std::vector<std::vector<int>>& parts,
                                       int largest, int longest) const {
    const std::vector<Division> crossings = shuffled(static_cast<int>(parts.size()), recipe_);
    std::size_t parts_at_once = 2;
    for (const Division& crossing : crossings) {
      for (const std::vector<int>& group : crossing) {
        parts_at_once = std::max(parts_at_once, group.size());
      }
    }
    // Workers of one part in one crossing group, and crossing groups side by side.
    const int width = std::max(1, recipe_.group / static_cast<int>(parts_at_once));
    const int lanes = recipe_.all_cross ? (largest + width - 1) / width : 1;
    const int turn_length = static_cast<int>(inner.size() + crossings.size());
    const int all_turns = (largest + lanes * width - 1) / (lanes * width);
    const int turns = std::clamp(all_turns, 1, std::max(1, longest / turn_length));
    std::vector<Division> rounds;
    for (int turn = 0; turn < turns; ++turn) {
      rounds.insert(rounds.end(), inner.begin(), inner.end());
      for (std::size_t c = 0; c < crossings.size(); ++c) {
        const Division* meanwhile = inner.empty() ? nullptr : &inner[c % inner.size()];
        rounds.push_back(cross(crossings[c], parts, {turn, lanes, width}, meanwhile));
      }
    }
    return rounds;
  }

  struct Crossing {
    int turn;
    int lanes;
    int width;
  };

  // One crossing: in each lane, the delegates of a group of parts average; the others keep to `meanwhile`.
  static Division cross(const Division& groups, const std::vector<std::vector<int>>& parts, const Crossing& how,
                        const Division* meanwhile) {
    Division division;
    std::set<int> busy;
    for (int lane = 0; lane < how.lanes; ++lane) {
      for (const std::vector<int>& group : groups) {
        std::vector<int> delegates;
        for (const int part : group) {
          const std::vector<int>& members = parts[index(part)];
          for (int i = 0; i < how.width; ++i) {
            const int turn = (how.turn * how.lanes + lane) * how.width + i;
            if (index(lane * how.width + i) < members.size()) {
              delegates.push_back(members[index(turn) % members.size()]);
            }
          }
        }
        std::erase_if(delegates, [&](int position) { return !busy.insert(position).second; });
        division.push_back(std::move(delegates));
      }
    }
    for (std::vector<int> group : meanwhile == nullptr ? Division{} : *meanwhile) {
      std::erase_if(group, [&](int position) { return busy.contains(position); });
      division.push_back(std::move(group));
    }
    std::erase_if(division, [](const std::vector<int>& group) { return group.size() < 2; });
    return division;
  }

  std::vector<std::vector<int>> parts_of(const Region& region) const {
    std::vector<std::vector<int>> parts = singles(region.loose);
    for (const int child : region.children) {
      parts.push_back(regions_[index(child)].members);
    }
    return parts;
  }

  static std::vector<std::vector<int>> singles(const std::vector<int>& positions) {
    std::vector<std::vector<int>> parts;
    for (const int position : positions) {
      parts.push_back({position});
    }
    return parts;
  }

  static std::vector<Division> translate(std::vector<Division> rounds, const std::vector<std::vector<int>>& parts) {
    for (Division& round : rounds) {
      round = union_of(round, parts);
    }
    return rounds;
  }

  static std::vector<Division> joined(std::vector<Division> first, const std::vector<Division>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  const std::vector<Region> regions_;
  const Recipe recipe_;
};

std::vector<int> group_sizes(int limit, int workers) {
  const int most = std::min(limit, workers);
  std::set<int> sizes{most};
  for (int size = 2; size < most; size = size < 4 ? size + 1 : size * 2) {
    sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

// The tree cut off at a depth: regions there hold their workers directly.
std::vector<Region> pruned(const std::vector<Region>& regions, int depth) {
  std::vector<Region> result = regions;
  for (Region& region : result) {
    if (region.depth >= depth) {
      region.children.clear();
      region.loose = region.members;
    }
  }
  return result;
}

std::set<Recipe> recipes(int limit, int workers, int depth) {
  std::set<Recipe> all;
  const bool few = workers > kManyWorkers;
  for (const int group : few ? std::vector<int>{std::min(limit, workers)} : group_sizes(limit, workers)) {
    for (const Shuffle shuffle : {Shuffle::kGrid, Shuffle::kFewGroups, Shuffle::kStrides}) {
      all.insert({group, shuffle, false, 1, 0});
      for (const int cut_at : {std::min(depth, 1), depth}) {
        for (const int repeats : few ? std::vector<int>{1} : std::vector<int>{1, 2, 3, 5, 8}) {
          all.insert({group, shuffle, false, repeats, cut_at});
          all.insert({group, shuffle, true, repeats, cut_at});
        }
      }
    }
  }
  return all;
}

// Tries to lower S by exchanging two workers of a round, from several random starts: only for a few workers, where it
// pays.
class Tinkerer {
 public:
  Tinkerer(int workers, int group) : workers_(workers), groups_((workers + group - 1) / group) {}

  std::vector<Division> tinker() {
    std::vector<std::vector<int>> best;
    double least = std::numeric_limits<double>::infinity();
    for (int start = 0; start < kStarts; ++start) {
      std::vector<std::vector<int>> orders(index(2 + start % 2));
      for (std::vector<int>& order : orders) {
        order = shuffled_workers();
      }
      const double reached = improve(orders);
      if (reached < least) {
        least = reached;
        best = orders;
      }
    }
    return divisions(best);
  }

 private:
  static constexpr int kStarts = 6;
  static constexpr int kMaxSweeps = 6;

  std::vector<int> shuffled_workers() {
    std::vector<int> order(index(workers_));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i-- > 1;) {
      std::swap(order[i], order[random_() % (i + 1)]);
    }
    return order;
  }

  std::vector<Division> divisions(const std::vector<std::vector<int>>& orders) const {
    std::vector<Division> rounds;
    for (const std::vector<int>& order : orders) {
      rounds.push_back(cut(order, groups_));
    }
    return rounds;
  }

  double disagreement(const std::vector<std::vector<int>>& orders) const {
    Schedule schedule;
    for (Division& division : divisions(orders)) {
      schedule.push_back({"", std::move(division)});
    }
    return steady_disagreement(schedule, workers_);
  }

  double improve(std::vector<std::vector<int>>& orders) const {
    double now = disagreement(orders);
    for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
      const double before = now;
      for (std::vector<int>& order : orders) {
        for (std::size_t i = 0; i < order.size(); ++i) {
          for (std::size_t j = 0; j < i; ++j) {
            std::swap(order[i], order[j]);
            const double then = disagreement(orders);
            if (then < now - 1e-9) {
              now = then;
            } else {
              std::swap(order[i], order[j]);
            }
          }
        }
      }
      if (now == before) {
        break;
      }
    }
    return now;
  }

  const int workers_;
  const int groups_;
  std::mt19937 random_{3};
};

// The base's rounds with idle ones spread evenly between them.
Schedule with_idle(const Schedule& rounds, int idle, const Replicas& replicas) {
  const std::size_t total = rounds.size() + index(idle);
  const Round nobody = make_round({}, replicas);
  Schedule result;
  result.reserve(total);
  for (std::size_t t = 0, next = 0; t < total; ++t) {
    if (t * rounds.size() / total >= next || total - t == rounds.size() - next) {
      result.push_back(rounds[next++]);
    } else {
      result.push_back(nobody);
    }
    if (next == rounds.size()) {
      result.insert(result.end(), total - t - 1, nobody);
      break;
    }
  }
  return result;
}

}  // namespace

LimitedSearch::LimitedSearch(const Topology& topology, const Replicas& replicas, double bytes, int group_limit,
                             CostBook& costs)
    : replicas_(replicas) {
  const std::vector<Region> regions = find_regions(topology, replicas);
  int depth = 0;
  for (const Region& region : regions) {
    depth = std::max(depth, region.depth);
  }
  std::vector<std::vector<Division>> cycles;
  for (const Recipe& recipe : recipes(group_limit, replicas.count(), depth)) {
    cycles.push_back(Cook(pruned(regions, recipe.depth), recipe).rounds());
  }
  if (replicas.count() <= kFewWorkers) {
    cycles.push_back(Tinkerer(replicas.count(), group_limit).tinker());
  }
  std::sort(cycles.begin(), cycles.end());
  cycles.erase(std::unique(cycles.begin(), cycles.end()), cycles.end());
  std::erase_if(cycles, [](const std::vector<Division>& cycle) { return cycle.size() > index(kMaxCycle); });
  for (const std::vector<Division>& cycle : cycles) {
    Base base;
    for (const Division& division : cycle) {
      base.rounds.push_back(make_round(division, replicas));
    }
    base.cycle_norm =
        replicas.workers() > kMeasuredWorkers ? cycle_norm(base.rounds, replicas.workers(), kSlowMixing) : 0;
    if (base.cycle_norm > kSlowMixing) {
      continue;
    }
    const Cost interleaved = costs.cost_of(base.rounds, static_cast<int>(base.rounds.size()), bytes);
    base.latency = interleaved.latency_seconds;
    base.busiest = interleaved.seconds_per_iteration - base.latency;
    base.in_turn = costs.cost_of(base.rounds, 1, bytes).seconds_per_iteration;
    bases_.push_back(std::move(base));
  }
  // The cheap ones first: what they reach spares measuring the others.
  std::stable_sort(bases_.begin(), bases_.end(),
                   [](const Base& a, const Base& b) { return a.seconds(0) < b.seconds(0); });
}

// S with that many idle rounds if it is at most `limit`, otherwise anything above.
double LimitedSearch::disagreement_with(Base& base, int idle, double limit) {
  if (const auto known = base.disagreement.find(idle); known != base.disagreement.end()) {
    return known->second;
  }
  const Schedule schedule = with_idle(base.rounds, idle, replicas_);
  const double floor = disagreement_floor(schedule, replicas_.workers());
  if (floor > limit) {
    return floor;
  }
  const double measured = estimate_disagreement(schedule, replicas_.workers(), base.cycle_norm);
  base.disagreement.emplace(idle, measured);
  return measured;
}

// The most idle rounds, but at least `least`, that keep S within the limit; kNone where not even `least` does.
int LimitedSearch::most_idle(Base& base, int least, double limit) {
  const double enough = limit + kSearchTolerance;
  const auto fits = [&](int idle) { return disagreement_with(base, idle, enough) <= enough; };
  int high = std::max(0, kMaxCycle - static_cast<int>(base.rounds.size()));
  if (least > high || !fits(least)) {
    return kNone;
  }
  while (least < high) {
    const int middle = (least + high + 1) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      high = middle - 1;
    }
  }
  return least;
}

double LimitedSearch::Base::share(int idle) const {
  const auto length = static_cast<double>(rounds.size());
  return length / (length + idle);
}

// Interleaved, the latency of the slowest round is paid in every iteration; in turn, each round is paid when it comes.
bool LimitedSearch::Base::is_interleaved(int idle) const {
  return busiest * share(idle) + latency <= in_turn * share(idle);
}

double LimitedSearch::Base::seconds(int idle) const {
  return std::min(busiest * share(idle) + latency, in_turn * share(idle));
}

std::optional<Found> LimitedSearch::best(double disagreement) {
  std::optional<Found> found;
  double least = std::numeric_limits<double>::infinity();
  for (Base& base : bases_) {
    // Fewer idle rounds than this would not make it faster than what is found.
    int needed = 0;
    while (found && needed <= kMaxCycle && base.seconds(needed) >= least) {
      ++needed;
    }
    const int idle = most_idle(base, needed, disagreement);
    if (idle != kNone) {
      least = base.seconds(idle);
      found = realize(base, idle);
    }
  }
  // Estimates are on the safe side, so the tightest limit of all may have been missed.
  if (!found && disagreement + kSearchTolerance >= smallest_disagreement()) {
    found = realize(*smallest_->second, 0);
  }
  return found;
}

Found LimitedSearch::realize(const Base& base, int idle) const {
  const int length = static_cast<int>(base.rounds.size()) + idle;
  return {with_idle(base.rounds, idle, replicas_), base.is_interleaved(idle) ? length : 1};
}

double LimitedSearch::smallest_disagreement() {
  if (smallest_) {
    return smallest_->first;
  }
  std::vector<std::pair<double, Base*>> by_floor;
  for (Base& base : bases_) {
    by_floor.emplace_back(disagreement_floor(base.rounds, replicas_.workers()), &base);
  }
  std::stable_sort(by_floor.begin(), by_floor.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  double least = std::numeric_limits<double>::infinity();
  Base* best = nullptr;
  for (const auto& [floor, base] : by_floor) {
    if (floor < least && disagreement_with(*base, 0, least) < least) {
      least = disagreement_with(*base, 0, least);
      best = base;
    }
  }
  // That was an estimate; now exactly.
  smallest_ = {steady_disagreement(best->rounds, replicas_.workers()), best};
  return smallest_->first;
}

}  // namespace dssync
