// Errors of codecs, followed through the stages of each average.
#include "dssync/planner/codec_error.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "dssync/base/index.h"
#include "dssync/planner/mixing.h"
#include "dssync/planner/tuning.h"

namespace dssync {
namespace {

// Where the vector is looked at. In a regular network all places are alike.
constexpr std::array kPlaces = {0.31, 0.77};

// Workers in blocks.
struct Blocks {
  std::vector<int> of;                // by rank
  std::vector<double> size;           // by block
  std::vector<std::vector<int>> all;  // the ranks of each block

  explicit Blocks(const std::vector<Group>& groups, int workers) : of(index(workers)), all(groups) { number(); }

  // The finest blocks that all groups fit into.
  void join(const std::vector<Group>& groups) {
    std::vector<int> parent(all.size());
    std::iota(parent.begin(), parent.end(), 0);
    const auto find = [&](int block) {
      while (parent[index(block)] != block) block = parent[index(block)] = parent[index(parent[index(block)])];
      return block;
    };
    for (const Group& group : groups) {
      for (const Rank rank : group) {
        const int a = find(of[index(group.front())]);
        const int b = find(of[index(rank)]);
        parent[index(std::max(a, b))] = std::min(a, b);
      }
    }
    std::vector<std::vector<int>> joined;
    std::vector<int> place(all.size(), -1);
    for (std::size_t block = 0; block < all.size(); ++block) {
      const std::size_t top = index(find(static_cast<int>(block)));
      if (place[top] < 0) {
        place[top] = static_cast<int>(joined.size());
        joined.emplace_back();
      }
      std::vector<int>& target = joined[index(place[top])];
      target.insert(target.end(), all[block].begin(), all[block].end());
    }
    all = std::move(joined);
    number();
  }

 private:
  void number() {
    size.clear();
    for (std::size_t block = 0; block < all.size(); ++block) {
      size.push_back(static_cast<double>(all[block].size()));
      for (const int rank : all[block]) of[index(rank)] = static_cast<int>(block);
    }
  }
};

// What a worker's value is made of before a round: steps of noise since the reference was made, by the blocks inside of
// which they have been averaged since.
class Motion {
 public:
  explicit Motion(int workers) : counts_(index(workers), 0) {}

  void add(const Blocks& blocks) {
    if (steps_.empty() || steps_.back().first.all.size() != blocks.all.size()) {
      steps_.emplace_back(blocks, 0.0);
    }
    steps_.back().second += 1;
  }

  // Values travel themselves.
  void add_values() { values_ = kValueVariance; }

  // Of the sum over these workers.
  double variance_of_sum(const std::vector<int>& ranks) {
    double sum = values_ * static_cast<double>(ranks.size()) * static_cast<double>(ranks.size());
    for (const auto& [blocks, times] : steps_) {
      for (const int rank : ranks) counts_[index(blocks.of[index(rank)])] += 1;
      for (const int rank : ranks) {
        double& count = counts_[index(blocks.of[index(rank)])];
        sum += times * count * count / blocks.size[index(blocks.of[index(rank)])];
        count = 0;
      }
    }
    return sum;
  }

 private:
  std::vector<std::pair<Blocks, double>> steps_;  // how many of each
  double values_ = 0;
  std::vector<double> counts_;  // by block; zeros between calls
};

// Follows what is at one place of the vector through the stages of one average.
class Voyage {
 public:
  Voyage(const Group& group, const Replicas& replicas, Motion& motion) : group_(group), motion_(motion) {
    int last = kNone;
    for (const Rank rank : group) {
      const int number = replicas.number_of(rank);
      const Group& replica = replicas.groups()[index(number)];
      if (number == last || replica.front() != rank) {  // one of those before
        part_of_.push_back(part_of_[at(replica.front())]);
      } else {
        part_of_.push_back(static_cast<int>(parts_.size()));
        parts_.push_back({replica, 0});
      }
      last = number;
    }
  }

  // The variance of the error that all members end with.
  double run(const Lowering& lowering, double place) {
    for (const std::vector<Stage>& phase : lowering.phases) {
      double gathered = 0;
      for (const Stage& stage : phase) {
        if (place < stage.bounds.front() || place >= stage.bounds.back()) continue;
        if (stage.kind == Stage::Kind::kAllGather) {
          gathered = std::max(gathered, error_variance(stage.codec));
        } else {
          reduce(stage, place);
        }
      }
      if (gathered > 0) error_ += gathered * (motion_.variance_of_sum(group_) + error_);
    }
    const auto size = static_cast<double>(group_.size());
    return error_ / (size * size);
  }

 private:
  // A sum over some workers, and the variance of its error.
  struct Part {
    std::vector<int> ranks;
    double error = 0;
  };

  std::size_t at(Rank rank) const {
    return static_cast<std::size_t>(std::lower_bound(group_.begin(), group_.end(), rank) - group_.begin());
  }

  void reduce(const Stage& stage, double place) {
    const double added = error_variance(stage.codec);
    const bool is_pair = stage.kind == Stage::Kind::kAllReduce;  // encodes the own part, too
    Part sum;
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      const Part& part = parts_[index(part_of_[at(stage.members[i])])];
      const bool is_owner = !is_pair && stage.bounds[i] <= place && place < stage.bounds[i + 1];
      const bool is_encoded = added > 0 && !is_owner;
      sum.error += part.error + (is_encoded ? added * (motion_.variance_of_sum(part.ranks) + part.error) : 0);
      sum.ranks.insert(sum.ranks.end(), part.ranks.begin(), part.ranks.end());
    }
    error_ = std::max(error_, sum.error);
    for (const Rank rank : sum.ranks) part_of_[at(rank)] = static_cast<int>(parts_.size());
    parts_.push_back(std::move(sum));
  }

  const Group& group_;  // ascending
  Motion& motion_;
  std::vector<int> part_of_;  // by index in the group
  std::vector<Part> parts_;
  double error_ = 0;  // of the sum over the whole group, as far as it is made
};

class Account {
 public:
  Account(const Schedule& schedule, const Replicas& replicas, const LoweringOf& lowering_of)
      : schedule_(schedule), replicas_(replicas), lowering_of_(lowering_of), has_reference_(has_reference(schedule)) {}

  double disagreement() const {
    double sum = 0;
    for (std::size_t t = 0; t < schedule_.size(); ++t) sum += added_in(t);
    return sum / static_cast<double>(schedule_.size()) / replicas_.workers();
  }

 private:
  const Round& round_at(std::size_t t) const { return schedule_[t % schedule_.size()]; }

  // The errors of round t, in this and all later rounds.
  double added_in(std::size_t t) const {
    const Round& round = round_at(t);
    if (round.groups.size() == 1) return 0;  // all have the same error
    const std::vector<double> errors = errors_of(t);
    if (std::all_of(errors.begin(), errors.end(), [](double error) { return error == 0; })) return 0;
    Blocks blocks(round.groups, replicas_.workers());
    double sum = 0;
    for (std::size_t later = 1; blocks.all.size() > 1 && later <= 64 * schedule_.size(); ++later) {
      for (std::size_t g = 0; g < errors.size(); ++g) {
        const auto size = static_cast<double>(round.groups[g].size());
        const double block = blocks.size[index(blocks.of[index(round.groups[g].front())])];
        sum += size * size * errors[g] * (1 / block - 1.0 / replicas_.workers());
      }
      blocks.join(round_at(t + later).groups);
    }
    return sum;
  }

  // The variance of each group's error.
  std::vector<double> errors_of(std::size_t t) const {
    const Round& round = round_at(t);
    std::optional<Motion> motion;
    std::vector<double> errors;
    for (const Group& group : round.groups) {
      double& error = errors.emplace_back(0);
      if (group.size() < 2 || replicas_.count_in(group) < 2) continue;
      const Lowering& lowering = lowering_of_(group);
      if (!is_encoded(lowering)) continue;
      if (!motion) motion = motion_before(t);
      for (const double place : kPlaces)
        error += Voyage(group, replicas_, *motion).run(lowering, place) / kPlaces.size();
    }
    return errors;
  }

  static bool is_encoded(const Lowering& lowering) {
    return std::any_of(lowering.phases.begin(), lowering.phases.end(), [](const std::vector<Stage>& phase) {
      return std::any_of(phase.begin(), phase.end(), [](const Stage& stage) { return stage.codec != Codec::kFloat32; });
    });
  }

  Motion motion_before(std::size_t t) const {
    Motion motion(replicas_.workers());
    if (!has_reference_) {
      motion.add_values();
      return motion;
    }
    Blocks blocks(replicas_.groups(), replicas_.workers());
    for (std::size_t before = t + schedule_.size();; --before) {
      motion.add(blocks);
      const Round& round = round_at(before - 1);
      if (round.groups.size() == 1) return motion;
      blocks.join(round.groups);
    }
  }

  const Schedule& schedule_;
  const Replicas& replicas_;
  const LoweringOf& lowering_of_;
  const bool has_reference_;
};

}  // namespace

bool has_reference(const Schedule& schedule) {
  return std::any_of(schedule.begin(), schedule.end(), [](const Round& round) { return round.groups.size() == 1; });
}

double codec_disagreement(const Schedule& schedule, const Replicas& replicas, double steady,
                          const LoweringOf& lowering_of) {
  const double added = Account(schedule, replicas, lowering_of).disagreement();
  if (added == 0) return 0;
  const double floor = disagreement_floor(schedule, replicas.workers());
  return floor > 0 ? added * std::max(1.0, steady / floor) : added;
}

}  // namespace dssync
