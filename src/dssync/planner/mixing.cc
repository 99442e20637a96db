// Mixing of a schedule, matrix-free. Three ways to the same figures, by what the rounds allow:
//  - Rounds that commute are projections, and so are their products: noise that has passed through some rounds is left
//  with one
//    degree of freedom per block of those rounds' join, less one. Counting blocks gives S exactly in O(N).
//  - Otherwise the covariance of the replicas is iterated to its fixed point, up to kDenseWorkers.
//  - Beyond that, the process is simulated.
#include "dssync/planner/mixing.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "dssync/base/index.h"

namespace dssync {
namespace {

constexpr int kDenseWorkers = 256;
constexpr double kSimulatedSteps = 1 << 22;  // workers x iterations
// For estimates: how much is simulated, and a margin far above the error.
constexpr double kEstimatedSteps = 1 << 19;
constexpr double kEstimateMargin = 1.03;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Vector = std::vector<double>;

// Blocks that grow by merging.
class Partition {
 public:
  explicit Partition(int workers) : parent_(index(workers)), blocks_(workers) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  void merge(const Round& round) {
    for (const Group& group : round.groups) {
      for (const Rank rank : group) {
        join(group.front(), rank);
      }
    }
  }

  int find(int worker) {
    while (parent_[index(worker)] != worker) {
      worker = parent_[index(worker)] = parent_[index(parent_[index(worker)])];
    }
    return worker;
  }

  int blocks() const { return blocks_; }

 private:
  void join(int a, int b) {
    a = find(a);
    b = find(b);
    if (a != b) {
      parent_[index(std::max(a, b))] = std::min(a, b);
      --blocks_;
    }
  }

  std::vector<int> parent_;
  int blocks_;
};

std::vector<int> group_of(const Round& round, int workers) {
  std::vector<int> groups(index(workers));
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    for (const Rank rank : round.groups[g]) {
      groups[index(rank)] = static_cast<int>(g);
    }
  }
  return groups;
}

// Averaging in a, then b, is the same as in b, then a, if and only if inside each block C of their join every group of
// a and every group of b share |A| |B| / |C| workers.
bool commute(const Round& a, const Round& b, int workers) {
  Partition join(workers);
  join.merge(a);
  join.merge(b);
  const std::vector<int> in_a = group_of(a, workers);
  const std::vector<int> in_b = group_of(b, workers);
  std::vector<std::int64_t> block_size(index(workers), 0);
  std::vector<std::pair<int, int>> meetings(index(workers));
  for (int worker = 0; worker < workers; ++worker) {
    ++block_size[index(join.find(worker))];
    meetings[index(worker)] = {in_a[index(worker)], in_b[index(worker)]};
  }
  std::sort(meetings.begin(), meetings.end());
  for (auto first = meetings.begin(); first != meetings.end();) {
    const auto last = std::find_if(first, meetings.end(), [&](const auto& other) { return other != *first; });
    const Group& group_a = a.groups[index(first->first)];
    const auto whole = block_size[index(join.find(group_a.front()))];
    const auto sizes = static_cast<std::int64_t>(group_a.size() * b.groups[index(first->second)].size());
    if ((last - first) * whole != sizes) {
      return false;
    }
    first = last;
  }
  return true;
}

bool all_commute(const Schedule& schedule, const Cycle& cycle, int workers) {
  for (std::size_t i = 0; i < cycle.distinct().size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!commute(schedule[cycle.distinct()[i]], schedule[cycle.distinct()[j]], workers)) {
        return false;
      }
    }
  }
  return true;
}

bool joins_all(const Schedule& schedule, const Cycle& cycle, int workers) {
  Partition all(workers);
  for (const std::size_t round : cycle.distinct()) {
    all.merge(schedule[round]);
  }
  return all.blocks() == 1;
}

// S if the rounds commute, and no more than S if they don't: what is constant on the blocks of the join passes any
// rounds unharmed. REQUIRES: the join of all rounds is one block.
double count_disagreement(const Schedule& schedule, const Cycle& cycle, int workers) {
  std::map<std::vector<bool>, int> blocks_of;  // by the set of kinds joined
  double total = 0;
  const std::size_t length = cycle.length();
  for (std::size_t t = 0; t < length; ++t) {
    std::vector<bool> joined(cycle.distinct().size(), false);
    for (std::size_t age = 0; age < length; ++age) {
      joined[cycle.kind_of((t + length - age) % length)] = true;
      auto [entry, is_new] = blocks_of.try_emplace(joined, 0);
      if (is_new) {
        Partition join(workers);
        for (std::size_t k = 0; k < joined.size(); ++k) {
          if (joined[k]) {
            join.merge(schedule[cycle.distinct()[k]]);
          }
        }
        entry->second = join.blocks();
      }
      if (entry->second == 1) {
        break;
      }
      total += entry->second - 1;
    }
  }
  return total / static_cast<double>(length) / workers;
}

void average_groups(const Round& round, Vector& values) {
  for (const Group& group : round.groups) {
    if (group.size() > 1) {
      double sum = 0;
      for (const Rank rank : group) {
        sum += values[index(rank)];
      }
      for (const Rank rank : group) {
        values[index(rank)] = sum / static_cast<double>(group.size());
      }
    }
  }
}

double squared_norm(const Vector& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

void remove_mean(Vector& values) {
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& value : values) {
    value -= mean;
  }
}

// Adds 1 or -1 to each value, and takes the mean off.
void add_random_signs(Vector& values, std::mt19937_64& random) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < values.size(); ++i, bits >>= 1U) {
    if (i % 64 == 0) {
      bits = random();
    }
    values[i] += (bits & 1U) != 0 ? 1 : -1;
  }
  remove_mean(values);
}

// Power iteration on the product of the cycle with its transpose.
double power_norm(const Schedule& schedule, int workers) {
  std::mt19937_64 random(1);
  double norm = 0;
  for (int start = 0; start < 2; ++start) {
    Vector values(index(workers));
    for (double& value : values) {
      // Any real number: sums of signs are zero too often, and a start that the cycle annihilates tells nothing.
      value = static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5;
    }
    remove_mean(values);
    double estimate = 0;
    for (int step = 0; step < 5000; ++step) {
      const double before = std::sqrt(squared_norm(values));
      if (before < 1e-150) {
        break;
      }
      for (double& value : values) {
        value /= before;
      }
      for (const Round& round : schedule) {
        average_groups(round, values);
      }
      const double passed = std::sqrt(squared_norm(values));
      const bool settled = std::abs(passed - estimate) <= (workers <= kDenseWorkers ? 1e-15 : 1e-9) * passed;
      estimate = passed;
      if (settled || passed < 1e-13) {
        break;
      }
      for (auto round = schedule.rbegin(); round != schedule.rend(); ++round) {
        average_groups(*round, values);
      }
      remove_mean(values);
    }
    norm = std::max(norm, estimate);
  }
  return norm < 1e-12 ? 0 : norm;
}

// How the groups of a round are made up of the groups of the round before.
struct Passage {
  struct Piece {
    std::size_t from;  // a group of the round before
    double share;      // of the new group's workers
  };
  std::vector<std::vector<Piece>> pieces;  // by new group
  std::size_t groups_before = 0;

  Passage(const Round& before, const Round& after, int workers) : groups_before(before.groups.size()) {
    const std::vector<int> origin = group_of(before, workers);
    for (const Group& group : after.groups) {
      std::map<std::size_t, double> shares;
      for (const Rank rank : group) {
        shares[index(origin[index(rank)])] += 1.0 / static_cast<double>(group.size());
      }
      pieces.emplace_back();
      for (const auto& [from, share] : shares) {
        pieces.back().push_back({from, share});
      }
    }
  }
};

// The covariance of the replicas' differences after a round. Members of a group are equal, so it is kept by groups.
class Covariance {
 public:
  explicit Covariance(std::size_t groups) : rows_(groups, Vector(groups, 0)) {}

  // One iteration: unit noise on every worker (its mean left out, for it is no disagreement), then the averages.
  void step(const Passage& passage, const Round& round, int workers) {
    std::vector<Vector> next(round.groups.size(), Vector(round.groups.size()));
    Vector mixed(passage.groups_before);
    for (std::size_t a = 0; a < next.size(); ++a) {
      std::fill(mixed.begin(), mixed.end(), 0);
      for (const auto& [from, share] : passage.pieces[a]) {
        const Vector& row = rows_[from];
        for (std::size_t i = 0; i < mixed.size(); ++i) {
          mixed[i] += share * row[i];
        }
      }
      for (std::size_t b = 0; b < next.size(); ++b) {
        double sum = -1.0 / workers;
        for (const auto& [from, share] : passage.pieces[b]) {
          sum += share * mixed[from];
        }
        next[a][b] = sum;
      }
      next[a][a] += 1.0 / static_cast<double>(round.groups[a].size());
    }
    rows_ = std::move(next);
  }

  double trace(const Round& round) const {
    double sum = 0;
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      sum += rows_[a][a] * static_cast<double>(round.groups[a].size());
    }
    return sum;
  }

 private:
  std::vector<Vector> rows_;
};

// Cycles until the mean trace settles. The increments shrink geometrically in the end, so their sum is extrapolated.
double iterate_disagreement(const Schedule& schedule, int workers) {
  const std::size_t length = schedule.size();
  std::vector<Passage> passages;
  for (std::size_t t = 0; t < length; ++t) {
    passages.emplace_back(schedule[(t + length - 1) % length], schedule[t], workers);
  }
  Covariance covariance(passages.front().groups_before);
  double last = 0;
  double last_gain = 0;
  double last_limit = 0;
  for (int cycle = 0; cycle < 100'000; ++cycle) {
    double sum = 0;
    for (std::size_t t = 0; t < length; ++t) {
      covariance.step(passages[t], schedule[t], workers);
      sum += covariance.trace(schedule[t]);
    }
    const double now = sum / static_cast<double>(length) / workers;
    const double gain = now - last;
    const double ratio = last_gain > 0 ? std::clamp(gain / last_gain, 0.0, 0.999999) : 0;
    const double limit = now + gain * ratio / (1 - ratio);
    if (cycle > 1 && (std::abs(limit - last_limit) <= 1e-11 * limit || gain <= 1e-13 * now)) {
      return limit;
    }
    last = now;
    last_gain = gain;
    last_limit = limit;
  }
  return last_limit;
}

// Runs the process itself on random signs and averages what it shows; with so many workers a moderate number of
// iterations is enough. `cycle_norm` tells how long it takes to forget the start.
double simulate_disagreement(const Schedule& schedule, int workers, double cycle_norm, double steps) {
  const double forgetting = std::log(1e-4) / (2 * std::log(std::clamp(cycle_norm, 1e-4, 0.9999)));
  const int warm_up = 1 + static_cast<int>(std::ceil(forgetting));
  const double wanted = steps / workers / static_cast<double>(schedule.size());
  const int cycles = warm_up + std::max(warm_up, static_cast<int>(std::ceil(wanted)));
  std::mt19937_64 random(2);
  Vector values(index(workers), 0);
  double total = 0;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    for (const Round& round : schedule) {
      add_random_signs(values, random);
      average_groups(round, values);
      total += cycle < warm_up ? 0 : squared_norm(values);
    }
  }
  return total / (cycles - warm_up) / static_cast<double>(schedule.size()) / workers;
}

// What the rounds of a schedule have to do with each other decides how it is measured.
enum class Family {
  kApart,      // some workers never meet
  kCommuting,  // all rounds commute
  kGeneral,
};

struct Structure {
  const Schedule& schedule;
  int workers;
  Cycle cycle;
  Family family;

  Structure(const Schedule& its_schedule, int its_workers)
      : schedule(its_schedule), workers(its_workers), cycle(its_schedule) {
    if (!joins_all(schedule, cycle, workers)) {
      family = Family::kApart;
    } else {
      family = all_commute(schedule, cycle, workers) ? Family::kCommuting : Family::kGeneral;
    }
  }
};

double norm_of(const Structure& structure) {
  if (structure.family == Family::kGeneral) {
    return power_norm(structure.schedule, structure.workers);
  }
  return structure.family == Family::kApart ? 1 : 0;
}

// `norm` is only of use beyond kDenseWorkers.
double disagreement_of(const Structure& structure, double norm) {
  if (structure.family == Family::kApart) {
    return kInfinity;
  }
  if (structure.family == Family::kCommuting) {
    return count_disagreement(structure.schedule, structure.cycle, structure.workers);
  }
  return structure.workers <= kDenseWorkers
             ? iterate_disagreement(structure.schedule, structure.workers)
             : simulate_disagreement(structure.schedule, structure.workers, norm, kSimulatedSteps);
}

}  // namespace

double disagreement_floor(const Schedule& schedule, int workers) {
  const Cycle cycle(schedule);
  return joins_all(schedule, cycle, workers) ? count_disagreement(schedule, cycle, workers) : kInfinity;
}

double steady_disagreement(const Schedule& schedule, int workers) {
  const Structure structure(schedule, workers);
  return disagreement_of(structure, workers > kDenseWorkers ? norm_of(structure) : 0);
}

double estimate_disagreement(const Schedule& schedule, int workers, double norm) {
  const Structure structure(schedule, workers);
  if (structure.family != Family::kGeneral || workers <= kMeasuredWorkers) {
    return disagreement_of(structure, norm);
  }
  return kEstimateMargin * simulate_disagreement(schedule, workers, norm, kEstimatedSteps);
}

double cycle_norm(const Schedule& schedule, int workers) { return norm_of(Structure(schedule, workers)); }

Mixing measure_mixing(const Schedule& schedule, int workers) {
  const Structure structure(schedule, workers);
  const double norm = norm_of(structure);
  return {norm, disagreement_of(structure, norm)};
}

}  // namespace dssync
