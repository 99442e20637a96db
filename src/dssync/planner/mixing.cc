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

// The blocks of the join of some kinds of rounds.
int count_blocks(const Schedule& schedule, const Cycle& cycle, const std::vector<bool>& kinds, int workers) {
  Partition join(workers);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind]) {
      join.merge(schedule[cycle.distinct()[kind]]);
    }
  }
  return join.blocks();
}

// S if the rounds commute, and no more than S if they don't: what is constant on the blocks of the join passes any
// rounds unharmed. REQUIRES: the join of all rounds is one block.
double count_disagreement(const Schedule& schedule, const Cycle& cycle, int workers) {
  std::map<std::vector<bool>, int> blocks_of;  // by the set of kinds joined
  double total = 0;
  const std::size_t length = cycle.length();
  for (std::size_t t = 0; t < length; ++t) {
    std::vector<bool> joined(cycle.distinct().size(), false);
    int blocks = workers;
    for (std::size_t age = 0; age < length; ++age) {
      const std::size_t kind = cycle.kind_of((t + length - age) % length);
      if (!joined[kind]) {
        joined[kind] = true;
        const auto [entry, is_new] = blocks_of.try_emplace(joined, 0);
        if (is_new) {
          entry->second = count_blocks(schedule, cycle, joined, workers);
        }
        blocks = entry->second;
      }
      if (blocks == 1) {
        break;
      }
      total += blocks - 1;
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

// Two vectors side by side, so that sums of both go on at once.
struct Twin {
  double first = 0;
  double second = 0;

  Twin& operator+=(const Twin& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
  friend Twin operator/(const Twin& twin, double divisor) { return {twin.first / divisor, twin.second / divisor}; }
};
using Twins = std::vector<Twin>;

Twin squared_norm(const Twins& values) {
  Twin sum;
  for (const Twin& value : values) {
    sum += {value.first * value.first, value.second * value.second};
  }
  return sum;
}

void remove_mean(Twins& values) {
  Twin sum;
  for (const Twin& value : values) {
    sum += value;
  }
  const Twin mean = sum / static_cast<double>(values.size());
  for (Twin& value : values) {
    value.first -= mean.first;
    value.second -= mean.second;
  }
}

// From the values of the groups of one round to the means of the groups of the next. Members of a group are equal, so
// each group has one value.
class Hop {
 public:
  Hop(const std::vector<int>& group_before, const Round& after) {
    for (const Group& group : after.groups) {
      for (const Rank rank : group) {
        origins_.push_back(group_before[index(rank)]);
      }
      sizes_.push_back(static_cast<int>(group.size()));
    }
  }

  void average(const Twins& before, Twins& after) const {
    after.resize(sizes_.size());
    const Twin* const values = before.data();
    const int* origin = origins_.data();
    for (std::size_t g = 0; g < sizes_.size(); ++g) {
      Twin sum;
      for (const int* const end = origin + sizes_[g]; origin != end; ++origin) {
        sum += values[*origin];
      }
      after[g] = sizes_[g] > 1 ? sum / sizes_[g] : sum;
    }
  }

 private:
  std::vector<int> origins_;  // of each member of each group: its group before
  std::vector<int> sizes_;    // of the groups
};

// Rounds that follow each other, on two vectors at once.
class Journey {
 public:
  Journey(const Schedule& rounds, int workers) : groups_(index(workers)) {
    std::iota(groups_.begin(), groups_.end(), 0);  // everyone has a value of its own
    for (const Round& round : rounds) {
      hops_.emplace_back(groups_, round);
      groups_ = group_of(round, workers);
    }
  }

  void run(Twins& values) {
    now_ = values;
    for (const Hop& hop : hops_) {
      hop.average(now_, next_);
      std::swap(now_, next_);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = now_[index(groups_[i])];
    }
  }

 private:
  std::vector<Hop> hops_;
  std::vector<int> groups_;  // of the workers, in the end
  Twins now_;
  Twins next_;
};

// One of the two power iterations.
struct Estimate {
  double norm = 0;
  bool done = false;

  // Returns what to divide the vector by, or 0 to give it up.
  double scale(double length) {
    done = done || length < 1e-150;
    return done ? 0 : length;
  }

  void update(double passed, double precision) {
    if (!done) {
      done = std::abs(passed - norm) <= precision * passed || passed < 1e-13;
      norm = passed;
    }
  }
};

// Any real numbers: sums of signs are zero too often, and a start that the cycle annihilates tells nothing.
Twins random_starts(int workers) {
  std::mt19937_64 random(1);
  const auto next = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5; };
  Twins values(index(workers));
  std::for_each(values.begin(), values.end(), [&](Twin& value) { value.first = next(); });
  std::for_each(values.begin(), values.end(), [&](Twin& value) { value.second = next(); });
  remove_mean(values);
  return values;
}

// Power iteration on the product of the cycle with its transpose, from two starts. The estimates only grow, so it ends
// as soon as one is above the limit.
double power_norm(const Schedule& schedule, int workers, double limit) {
  const double precision = workers <= kDenseWorkers ? 1e-15 : 1e-9;
  Journey there(schedule, workers);
  Journey back({schedule.rbegin(), schedule.rend()}, workers);
  Twins values = random_starts(workers);
  Estimate first;
  Estimate second;
  for (int step = 0; step < 5000; ++step) {
    const Twin squared = squared_norm(values);
    const Twin scale{first.scale(std::sqrt(squared.first)), second.scale(std::sqrt(squared.second))};
    if (first.done && second.done) {
      break;
    }
    for (Twin& value : values) {
      value.first = scale.first > 0 ? value.first / scale.first : 0;
      value.second = scale.second > 0 ? value.second / scale.second : 0;
    }
    there.run(values);
    const Twin passed = squared_norm(values);
    first.update(std::sqrt(passed.first), precision);
    second.update(std::sqrt(passed.second), precision);
    if (std::max(first.norm, second.norm) > limit * (1 + 1e-9) || (first.done && second.done)) {
      break;
    }
    back.run(values);
    remove_mean(values);
  }
  const double norm = std::max(first.norm, second.norm);
  return norm < 1e-12 ? 0 : norm;
}

// How the groups of a round are made up of the groups of the round before.
struct Passage {
  struct Piece {
    std::size_t from;  // a group of the round before
    double share;      // of the new group's workers
  };
  std::vector<Piece> pieces;      // of all new groups
  std::vector<std::size_t> ends;  // by new group: where its pieces end
  std::size_t groups_before = 0;

  Passage(const Round& before, const Round& after, int workers) : groups_before(before.groups.size()) {
    const std::vector<int> origin = group_of(before, workers);
    for (const Group& group : after.groups) {
      std::map<std::size_t, double> shares;
      for (const Rank rank : group) {
        shares[index(origin[index(rank)])] += 1.0 / static_cast<double>(group.size());
      }
      for (const auto& [from, share] : shares) {
        pieces.push_back({from, share});
      }
      ends.push_back(pieces.size());
    }
  }
};

// The covariance of the replicas' differences after a round. Members of a group are equal, so it is kept by groups.
class Covariance {
 public:
  explicit Covariance(std::size_t groups) : groups_(groups), rows_(groups * groups, 0) {}

  // One iteration: unit noise on every worker (its mean left out, for it is no disagreement), then the averages.
  void step(const Passage& passage, const Round& round, int workers) {
    groups_ = round.groups.size();
    next_.resize(groups_ * groups_);
    mixed_.resize(passage.groups_before);
    for (std::size_t a = 0; a < groups_; ++a) {
      mix(passage, a);
      double* const row = next_.data() + a * groups_;
      fill(passage, -1.0 / workers, row);
      row[a] += 1.0 / static_cast<double>(round.groups[a].size());
    }
    std::swap(rows_, next_);
  }

  double trace(const Round& round) const {
    double sum = 0;
    for (std::size_t a = 0; a < groups_; ++a) {
      sum += rows_[a * groups_ + a] * static_cast<double>(round.groups[a].size());
    }
    return sum;
  }

 private:
  // The covariances of the new group `a` with all groups before, without noise.
  void mix(const Passage& passage, std::size_t a) {
    double* const mixed = mixed_.data();
    const std::size_t before = mixed_.size();
    std::fill(mixed_.begin(), mixed_.end(), 0);
    for (std::size_t p = a == 0 ? 0 : passage.ends[a - 1]; p < passage.ends[a]; ++p) {
      const double share = passage.pieces[p].share;
      const double* const row = rows_.data() + passage.pieces[p].from * before;
      for (std::size_t i = 0; i < before; ++i) {
        mixed[i] += share * row[i];
      }
    }
  }

  // And from these the covariances with all new groups, on top of `start`.
  void fill(const Passage& passage, double start, double* row) const {
    const double* const mixed = mixed_.data();
    const Passage::Piece* piece = passage.pieces.data();
    for (const std::size_t end : passage.ends) {
      double sum = start;
      for (const Passage::Piece* const last = passage.pieces.data() + end; piece != last; ++piece) {
        sum += piece->share * mixed[piece->from];
      }
      *row++ = sum;
    }
  }

  std::size_t groups_;
  Vector rows_;   // one after the other
  Vector next_;   // the same of the next round, while it is worked out
  Vector mixed_;  // a row between both
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

double norm_of(const Structure& structure, double limit = kInfinity) {
  if (structure.family == Family::kGeneral) {
    return power_norm(structure.schedule, structure.workers, limit);
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

double cycle_norm(const Schedule& schedule, int workers, double limit) {
  return norm_of(Structure(schedule, workers), limit);
}

Mixing measure_mixing(const Schedule& schedule, int workers) {
  const Structure structure(schedule, workers);
  const double norm = norm_of(structure);
  return {norm, disagreement_of(structure, norm)};
}

}  // namespace dssync
