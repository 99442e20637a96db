#include "dssync/planner/codec_error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "dssync/base/index.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/mixing.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using Values = std::vector<double>;

// Workers with vectors of numbers that go through the stages of each average, encoded as messages are: in blocks with
// one scale, rounded at random.
class Simulation {
 public:
  Simulation(const Topology& topology, const Schedule& schedule, const Replicas& replicas, const Codecs& codecs)
      : schedule_(schedule), replicas_(replicas), reference_(kElements, 0) {
    for (const Round& round : schedule) {
      for (const Group& group : round.groups) {
        if (replicas.count_in(group) > 1) lowerings_[group] = lower(group, topology, 1, replicas, codecs);
      }
    }
    values_.assign(index(topology.workers()), Values(kElements, 0));
  }

  // The mean over some cycles, after others.
  double disagreement(int warm_up, int cycles) {
    double sum = 0;
    for (int cycle = 0; cycle < warm_up + cycles; ++cycle) {
      for (const Round& round : schedule_) {
        add_noise();
        for (const Group& group : round.groups) {
          if (lowerings_.contains(group)) average(group);
        }
        if (round.groups.size() == 1) reference_ = values_.front();
        if (cycle >= warm_up) sum += distance();
      }
    }
    return sum / cycles / static_cast<double>(schedule_.size());
  }

 private:
  static constexpr std::size_t kElements = 60 * kCodecBlock;

  void add_noise() {
    for (const Group& replica : replicas_.groups()) {
      for (std::size_t i = 0; i < kElements; ++i) {
        double mean = 0;
        for (std::size_t worker = 0; worker < replica.size(); ++worker) mean += normal_(noise_);
        for (const Rank rank : replica) values_[index(rank)][i] += mean / static_cast<double>(replica.size());
      }
    }
  }

  double distance() const {
    double sum = 0;
    for (std::size_t i = 0; i < kElements; ++i) {
      double mean = 0;
      for (const Values& values : values_) mean += values[i] / static_cast<double>(values_.size());
      for (const Values& values : values_) sum += (values[i] - mean) * (values[i] - mean);
    }
    return sum / static_cast<double>(kElements * values_.size());
  }

  static std::size_t element(double bound) {
    return static_cast<std::size_t>(std::llround(bound * static_cast<double>(kElements)));
  }

  void average(const Group& group) {
    std::map<Rank, Values> sums;
    double divisor = 1;
    for (const Rank rank : group) {
      const Replicas::Weighing weighing = replicas_.weighing_of(group, rank);
      divisor = weighing.divisor;
      for (std::size_t i = 0; i < kElements; ++i) {
        sums[rank].push_back((values_[index(rank)][i] - reference_[i]) * weighing.weight);
      }
    }
    for (const std::vector<Stage>& phase : lowerings_.at(group).phases) {
      const std::map<Rank, Values> before = sums;
      const std::mt19937_64 seed = rounding_;  // owners in different regions round alike
      for (const Stage& stage : phase) {
        if (stage.kind == Stage::Kind::kAllGather) rounding_ = seed;
        carry_out(stage, before, sums);
      }
      rounding_.discard(1);
    }
    for (const Rank rank : group) {
      for (std::size_t i = 0; i < kElements; ++i) values_[index(rank)][i] = reference_[i] + sums[rank][i] / divisor;
    }
  }

  void carry_out(const Stage& stage, const std::map<Rank, Values>& before, std::map<Rank, Values>& sums) {
    const bool is_all_reduce = stage.kind == Stage::Kind::kAllReduce;
    for (std::size_t i = 0; i + 1 < stage.bounds.size(); ++i) {
      const std::size_t begin = element(stage.bounds[i]);
      const std::size_t end = element(stage.bounds[i + 1]);
      if (stage.kind == Stage::Kind::kAllGather) {
        const Values sent = passed(stage.codec, before.at(stage.members[i]), begin, end);
        for (const Rank to : stage.members)
          std::copy(sent.begin(), sent.end(), sums[to].begin() + std::ptrdiff_t(begin));
        continue;
      }
      Values sum(end - begin, 0);
      for (std::size_t from = 0; from < stage.members.size(); ++from) {
        const bool stays = !is_all_reduce && from == i;
        const Values sent = passed(stays ? Codec::kFloat32 : stage.codec, before.at(stage.members[from]), begin, end);
        std::transform(sum.begin(), sum.end(), sent.begin(), sum.begin(), std::plus());
      }
      for (const Rank to : stage.members) {
        if (is_all_reduce || to == stage.members[i]) {
          std::copy(sum.begin(), sum.end(), sums[to].begin() + std::ptrdiff_t(begin));
        }
      }
    }
  }

  // A message, decoded again.
  Values passed(Codec codec, const Values& values, std::size_t begin, std::size_t end) {
    Values result(values.begin() + std::ptrdiff_t(begin), values.begin() + std::ptrdiff_t(end));
    if (codec == Codec::kFloat32) return result;
    const double levels = codec == Codec::kInt8 ? 127 : 7;
    for (std::size_t block = 0; block < result.size(); block += kCodecBlock) {
      const std::size_t last = std::min(result.size(), block + static_cast<std::size_t>(kCodecBlock));
      double largest = 0;
      for (std::size_t i = block; i < last; ++i) largest = std::max(largest, std::abs(result[i]));
      const double step = largest / levels;
      for (std::size_t i = block; i < last && step > 0; ++i) {
        const double at = result[i] / step;
        const double below = std::floor(at);
        result[i] = step * (below + (uniform_(rounding_) < at - below ? 1 : 0));
      }
    }
    return result;
  }

  const Schedule& schedule_;
  const Replicas& replicas_;
  std::map<Group, Lowering> lowerings_;
  std::vector<Values> values_;
  Values reference_;
  std::mt19937_64 noise_{1};
  std::mt19937_64 rounding_{2};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

Group all_of(const Topology& topology) {
  Group group(index(topology.workers()));
  std::iota(group.begin(), group.end(), 0);
  return group;
}

Round nobody(const Replicas& replicas) { return {"nobody", replicas.groups()}; }

struct Case {
  const char* name;
  Topology topology;
  Schedule schedule;
  Codecs codecs;
  std::vector<Group> replicas{};
};

// 13 workers: racks of seven and of six.
Topology thirteen() {
  std::vector<Topology::HostSpec> hosts;
  for (int i = 0; i < 13; ++i) {
    hosts.push_back(testing::make_host("h" + std::to_string(i), i < 7 ? "a" : "b", 1));
  }
  return Topology::build(
      {testing::make_switch("core", "", 0), testing::make_switch("a", "core", 1), testing::make_switch("b", "core", 1)},
      hosts, "test");
}

std::vector<Case> cases() {
  const Codecs int4(Codec::kInt4);
  const Topology flat = testing::flat(8);
  const Topology two = testing::racks(2, 4, 4, 1);
  const Topology three = testing::racks(3, 2, 4, 1);
  const Topology odd = thirteen();
  const auto alone = [](const Topology& topology) { return nobody(Replicas(topology)); };
  const auto all = [](const Topology& topology) { return Round{"all", {all_of(topology)}}; };
  const Round racks{"racks", places_at(two, 1)};
  const Round odd_racks{"racks", places_at(odd, 1)};
  const Round pairs{"pairs", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}};
  const Round across{"across", {{0, 4}, {1, 5}, {2, 6}, {3, 7}}};
  const Round quads{"quads", {{0, 1, 2, 3}, {4, 5, 6, 7}}};
  return {
      {"flat, pairs and quads", flat, {pairs, quads, alone(flat), all(flat)}, int4},
      {"flat, all now and then", flat, {alone(flat), quads, alone(flat), quads, all(flat)}, int4},
      {"two racks", two, {alone(two), racks, pairs, pairs, all(two)}, int4},
      {"two racks, 8 bits inside",
       two,
       {racks, across, racks, racks, all(two)},
       Codecs({Codec::kFloat32, Codec::kInt8, Codec::kInt4})},
      {"racks of seven and six", odd, {odd_racks, alone(odd), odd_racks, odd_racks, alone(odd), all(odd)}, int4},
      {"three racks",
       three,
       {{"racks", places_at(three, 1)}, {"pair of racks", {{0, 1, 2, 3}, {4, 5}}}, all(three)},
       int4},
      {"exact racks",
       three,
       {{"pair of racks", {{0, 1, 2, 3}, {4, 5}}},
        {"nobody", places_at(three, 1)},
        {"another", {{0, 1}, {2, 3, 4, 5}}},
        all(three)},
       int4,
       places_at(three, 1)},
  };
}

double predicted(const Case& a, const Replicas& replicas) {
  CostBook book(a.topology, replicas, a.codecs);
  return codec_disagreement(a.schedule, replicas, steady_disagreement(a.schedule, a.topology.workers()),
                            [&](const Group& group) -> const Lowering& { return book.lowering_of(group, 1); });
}

TEST(CodecErrorTest, AddsWhatASimulationOfNoiseShows) {
  for (const Case& a : cases()) {
    const Replicas replicas(a.topology, a.replicas);
    const double steady = steady_disagreement(a.schedule, a.topology.workers());
    constexpr int kCycles = 12;
    const double exact = Simulation(a.topology, a.schedule, replicas, Codecs()).disagreement(3, kCycles);
    EXPECT_NEAR(exact, steady, 0.02 * steady) << a.name;
    const double added = Simulation(a.topology, a.schedule, replicas, a.codecs).disagreement(3, kCycles) - exact;
    EXPECT_GT(added, 0) << a.name;
    EXPECT_NEAR(predicted(a, replicas) / added, 1, 0.2) << a.name << ": S " << steady << ", added " << added;
  }
}

TEST(CodecErrorTest, WhatEveryoneSharesIsNoDisagreement) {
  const Topology topology = testing::flat(4);
  EXPECT_EQ(predicted({"", topology, {{"all", {all_of(topology)}}}, Codecs(Codec::kInt4)}, Replicas(topology)), 0);
}

// A pair: both send what they have, and divide the sum by two: 2 e V / 4. One step of noise since the reference: V = 1.
// In two pairs the error of either differs from the mean of both.
TEST(CodecErrorTest, APairByHand) {
  const Topology topology = testing::flat(4);
  const Case a{"", topology, {{"pairs", {{0, 1}, {2, 3}}}, {"all", {all_of(topology)}}}, Codecs(Codec::kInt4)};
  const double e = error_variance(Codec::kInt4);
  EXPECT_NEAR(predicted(a, Replicas(topology)), 0.5 * (e / 2) * 0.5, 1e-12);
}

TEST(CodecErrorTest, WithoutAReferenceValuesTravelThemselves) {
  const Topology topology = testing::flat(4);
  const Schedule grid = {{"rows", {{0, 1}, {2, 3}}}, {"columns", {{0, 2}, {1, 3}}}};
  EXPECT_FALSE(has_reference(grid));
  const double added = predicted({"", topology, grid, Codecs(Codec::kBfloat16)}, Replicas(topology));
  EXPECT_NEAR(added, error_variance(Codec::kBfloat16) * kValueVariance / 4, 1e-12);
}

}  // namespace
}  // namespace dssync
