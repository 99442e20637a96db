// Averages with codecs through the real engine: what they change, and that all members end with the same bits. Workers
// are threads.
#include "dssync/planner/codecs.h"

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dssync/collective/engine.h"
#include "dssync/collective/program/chain.h"
#include "dssync/comm/testing.h"
#include "dssync/planner/stages.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

Group all_of(int size) {
  Group group;
  for (Rank rank = 0; rank < size; ++rank) group.push_back(rank);
  return group;
}

// What worker `rank` brings in: noise that anybody can work out.
at::Tensor noise_of(Rank rank, std::int64_t size) {
  return at::sin(at::arange(size, at::kDouble).square() * 0.37 + rank * 1.7).to(at::kFloat);
}

at::Tensor mean_of(const Group& group, std::int64_t size) {
  at::Tensor sum = at::zeros({size}, at::kDouble);
  for (const Rank rank : group) sum += noise_of(rank, size).to(at::kDouble);
  return sum / static_cast<double>(group.size());
}

// The results of all workers.
class Results {
 public:
  explicit Results(int size) : tensors_(static_cast<std::size_t>(size)) {}
  void set(Rank rank, at::Tensor tensor) { tensors_[static_cast<std::size_t>(rank)] = std::move(tensor); }
  const at::Tensor& of(Rank rank) const { return tensors_[static_cast<std::size_t>(rank)]; }

  bool have_the_same_bits(const Group& group) const {
    for (const Rank rank : group) {
      if (!at::equal(of(rank).view(at::kInt), of(group.front()).view(at::kInt))) return false;
    }
    return true;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

std::shared_ptr<const Chain> chain_of(World& world, const Topology& topology, const Lowering& lowering, int size) {
  ChainBuilder builder(world, topology);
  builder.add(lowering, size);
  return std::make_shared<const Chain>(builder.build().front());
}

// Everyone averages a vector of each length.
std::vector<Results> average(const Topology& topology, const Lowering& lowering, const std::vector<at::Tensor>& inputs,
                             const std::vector<std::int64_t>& sizes, Seconds together = Seconds(0)) {
  const int workers = topology.workers();
  std::vector<Results> results(sizes.size(), Results(workers));
  run_ranks(workers, [&](World& world) {
    const auto chain = chain_of(world, topology, lowering, workers);
    Engine engine(explained_by(world), nullptr);
    for (std::size_t index = 0; index < sizes.size(); ++index) {
      at::Tensor vector = inputs.empty() ? noise_of(world.rank(), sizes[index])
                                         : inputs[static_cast<std::size_t>(world.rank())].clone();
      engine.average(vector, chain, 3, together, {.label = index});
      require_done(engine.wait());
      results[index].set(world.rank(), vector);
    }
  });
  return results;
}

const std::vector<std::int64_t> kCodedSizes = {1, 2, 7, 127, 128, 129, 500, 1009, 4096, 20001};

class CodecsTest : public ::testing::TestWithParam<Codec> {};

TEST_P(CodecsTest, GroupsOfEverySizeEndWithTheSameBitsNearTheMean) {
  for (const int workers : {2, 3, 4, 5}) {
    const Topology topology = testing::flat(workers);
    const Group group = all_of(workers);
    const Lowering lowering = encoded(lower_to_ring(group, topology), topology, Codecs(GetParam()));
    const std::vector<Results> results = average(topology, lowering, {}, kCodedSizes);
    for (std::size_t index = 0; index < kCodedSizes.size(); ++index) {
      EXPECT_TRUE(results[index].have_the_same_bits(group))
          << workers << " workers, " << kCodedSizes[index] << " values";
      // Values are within 1: at most a step of what each sends, and another one of the result.
      const double step = GetParam() == Codec::kFloat32    ? 1e-5
                          : GetParam() == Codec::kBfloat16 ? 1.0 / 128
                          : GetParam() == Codec::kInt8     ? 1.02 / 127
                                                           : 1.02 / 7;
      const at::Tensor error = results[index].of(0) - mean_of(group, kCodedSizes[index]);
      EXPECT_LE(error.abs().max().item<double>(), 2 * step);
    }
  }
}

// Groups across regions of different sizes, some of one worker, which takes no part in gathers.
TEST_P(CodecsTest, HierarchiesEndWithTheSameBits) {
  std::vector<Topology> networks;
  networks.push_back(testing::racks(2, 4, 4, 1));
  networks.push_back(testing::racks(3, 3, 4, 1));
  networks.push_back(testing::three_levels(2, 2, 2, 1, 8, 4, 1));
  for (const unsigned seed : {1U, 2U, 3U, 4U}) networks.push_back(testing::random_tree(seed, 9));
  for (std::size_t network = 0; network < networks.size(); ++network) {
    const Topology& topology = networks[network];
    const Group group = all_of(topology.workers());
    for (const Codecs& codecs : {Codecs(GetParam()), Codecs({Codec::kFloat32, Codec::kBfloat16, GetParam()})}) {
      const Lowering lowering = encoded(lower_hierarchically(group, topology), topology, codecs);
      const std::vector<Results> results = average(topology, lowering, {}, {1, 129, 1009, 20001}, Seconds(0.01));
      for (const Results& result : results) {
        EXPECT_TRUE(result.have_the_same_bits(group)) << "network " << network << ", " << result.of(0).numel();
        const at::Tensor error = result.of(0) - mean_of(group, result.of(0).numel());
        EXPECT_LE(error.abs().max().item<double>(), 0.5);
      }
    }
  }
}

TEST_P(CodecsTest, PartsOfAGroupAlone) {
  const Topology topology = testing::racks(2, 4, 4, 1);
  const Group group = {0, 4, 5, 6};
  const Lowering lowering = encoded(lower_hierarchically(group, topology), topology, Codecs(GetParam()));
  Results results(8);
  run_ranks(8, [&](World& world) {
    const bool is_member = std::find(group.begin(), group.end(), world.rank()) != group.end();
    const auto chain = chain_of(world, topology, is_member ? lowering : Lowering(), 4);
    Engine engine(explained_by(world), nullptr);
    at::Tensor vector = noise_of(world.rank(), 5000);
    if (is_member) engine.average(vector, chain, 0, Seconds(0));
    require_done(engine.wait());
    results.set(world.rank(), vector);
  });
  EXPECT_TRUE(results.have_the_same_bits(group));
}

TEST_P(CodecsTest, ANanOfOneWorkerReachesAllMembers) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const Topology topology = testing::racks(2, 2, 4, 1);
    const Group group = all_of(4);
    std::vector<at::Tensor> inputs;
    for (const Rank rank : group) inputs.push_back(noise_of(rank, 1000));
    inputs[2][700] = bad;
    for (const Lowering& lowering : {lower_hierarchically(group, topology), lower_to_ring(group, topology)}) {
      const std::vector<Results> results =
          average(topology, encoded(lowering, topology, Codecs(GetParam())), inputs, {1000});
      EXPECT_TRUE(results.front().have_the_same_bits(group));
      EXPECT_FALSE(std::isfinite(results.front().of(0)[700].item<float>()));
      EXPECT_TRUE(results.front().of(0).narrow(0, 0, 512).isfinite().all().item<bool>()) << "other blocks";
    }
  }
}

TEST_P(CodecsTest, OtherTypesAreAveragedAsEver) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  const Group group = all_of(4);
  const Lowering lowering = encoded(lower_hierarchically(group, topology), topology, Codecs(GetParam()));
  run_ranks(4, [&](World& world) {
    const auto chain = chain_of(world, topology, lowering, 4);
    Engine engine(explained_by(world), nullptr);
    const at::Tensor vector = noise_of(world.rank(), 1009).to(at::kDouble);
    engine.average(vector, chain, 0, Seconds(0));
    require_done(engine.wait());
    EXPECT_LE((vector - mean_of(group, 1009)).abs().max().item<double>(), 1e-12);
  });
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodecsTest,
                         ::testing::Values(Codec::kFloat32, Codec::kBfloat16, Codec::kInt8, Codec::kInt4),
                         [](const auto& codec) { return std::string(name_of(codec.param)); });

TEST(CodecsTest, SendOnlyTheBytesOfTheCodec) {
  const Topology topology = testing::flat(4);
  const Group group = all_of(4);
  constexpr std::int64_t kSize = 4 * 128 * 100;
  for (const Codec codec : all_codecs()) {
    const Lowering lowering = encoded(lower_to_servers(group, topology), topology, Codecs(codec));
    run_ranks(4, [&](World& world) {
      const auto chain = chain_of(world, topology, lowering, 4);
      Engine engine(explained_by(world), nullptr);
      engine.average(noise_of(world.rank(), kSize), chain, 0, Seconds(1e9));  // in one piece
      require_done(engine.wait());
      EXPECT_EQ(engine.take_bytes_sent(), 2 * 3 * encoded_bytes(codec, kSize / 4));
    });
  }
}

TEST(CodecsTest, ShortestCodecOfAnAverageHolds) {
  const Topology topology = testing::flat(2);
  const Lowering lowering = encoded(lower_to_ring(all_of(2), topology), topology, Codecs(Codec::kInt4));
  run_ranks(2, [&](World& world) {
    const auto chain = chain_of(world, topology, lowering, 2);
    Engine engine(explained_by(world), nullptr);
    engine.average(noise_of(world.rank(), 1000), chain, 0, Seconds(0), {.shortest = Codec::kBfloat16});
    require_done(engine.wait());
    EXPECT_EQ(engine.take_bytes_sent(), 2000);
  });
}

// Rounding is decided by the iteration and the label, so that runs can be repeated; another iteration rounds otherwise.
TEST(CodecsTest, RepeatToTheBit) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  const Group group = all_of(4);
  const Lowering lowering = encoded(lower_hierarchically(group, topology), topology, Codecs(Codec::kInt4));
  run_ranks(4, [&](World& world) {
    const auto chain = chain_of(world, topology, lowering, 4);
    Engine engine(explained_by(world), nullptr);
    const auto result = [&](std::int64_t iteration, std::uint64_t label) {
      at::Tensor vector = noise_of(world.rank(), 3000);
      engine.average(vector, chain, iteration, Seconds(0), {.label = label});
      require_done(engine.wait());
      return vector;
    };
    const at::Tensor first = result(1, 7);
    EXPECT_TRUE(at::equal(first, result(1, 7)));
    EXPECT_FALSE(at::equal(first, result(2, 7)));
    EXPECT_FALSE(at::equal(first, result(1, 8)));
  });
}

// With what all workers lost, the average is exact.
TEST(CodecsTest, TellWhatEncodingLost) {
  for (const Topology& topology :
       {testing::flat(2), testing::flat(4), testing::racks(2, 3, 4, 1), testing::racks(3, 2, 4, 1)}) {
    const int workers = topology.workers();
    const Group group = all_of(workers);
    const Lowering lowering = encoded(lower_hierarchically(group, topology), topology, Codecs(Codec::kInt4));
    at::Tensor all_lost = at::zeros({5000}, at::kDouble);
    at::Tensor average;
    std::mutex mutex;
    run_ranks(workers, [&](World& world) {
      const auto chain = chain_of(world, topology, lowering, workers);
      Engine engine(explained_by(world), nullptr);
      const at::Tensor vector = noise_of(world.rank(), 5000);
      const at::Tensor lost = at::zeros_like(vector);
      engine.average(vector, chain, 0, Seconds(0.01), {.lost = lost});
      require_done(engine.wait());
      const std::lock_guard lock(mutex);
      all_lost += lost.to(at::kDouble);
      average = vector;
    });
    EXPECT_GT(all_lost.abs().max().item<double>(), 0.01);
    const at::Tensor exact = average.to(at::kDouble) + all_lost / workers;
    EXPECT_LE((exact - mean_of(group, 5000)).abs().max().item<double>(), 1e-5) << workers;
  }
}

}  // namespace
}  // namespace dssync
