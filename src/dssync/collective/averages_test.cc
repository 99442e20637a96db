// Group averages through the real engine, against sums in double precision. Workers are threads.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dssync/collective/chain.h"
#include "dssync/collective/engine.h"
#include "dssync/comm/testing.h"
#include "dssync/planner/stages.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

Group everybody(int size) {
  Group group;
  for (Rank rank = 0; rank < size; ++rank) group.push_back(rank);
  return group;
}

// What worker `rank` brings in: any value can be worked out anywhere.
at::Tensor input(Rank rank, std::int64_t size, at::ScalarType type) {
  const at::Tensor position = at::arange(size, at::kDouble);
  return at::sin(position * 0.37 + rank * 1.7).mul_(rank + 1).to(type);
}

at::Tensor expected_average(const Group& group, std::int64_t size, at::ScalarType type) {
  at::Tensor sum = at::zeros({size}, at::kDouble);
  for (const Rank rank : group) sum += input(rank, size, type).to(at::kDouble);
  return sum / static_cast<double>(group.size());
}

// Several units in the last place of the largest value: sums in another order differ by so much.
double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 1e-13;
    case at::kFloat:
      return 1e-5;
    default:
      return 2e-2;
  }
}

void expect_close(const at::Tensor& result, const at::Tensor& expected, const std::string& what) {
  const double worst = result.numel() == 0 ? 0 : (result.to(at::kDouble) - expected).abs().max().item<double>();
  EXPECT_LE(worst, tolerance(result.scalar_type()) * 8) << what;
}

using SharedChains = std::vector<std::shared_ptr<const Chain>>;

SharedChains build(ChainBuilder& builder) {
  SharedChains result;
  for (Chain& chain : builder.build()) result.push_back(std::make_shared<const Chain>(std::move(chain)));
  return result;
}

struct Case {
  std::string name;
  Topology topology;
};

std::vector<Case> networks() {
  std::vector<Case> cases;
  cases.push_back({"flat of 5", testing::flat(5)});
  cases.push_back({"flat of 13", testing::flat(13)});
  cases.push_back({"two racks of 4", testing::racks(2, 4, 4, 1)});
  cases.push_back({"three racks of 3, two workers each", testing::racks(3, 3, 4, 1, 2)});
  cases.push_back({"three levels", testing::three_levels(2, 2, 2, 1, 8, 4, 1)});
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    cases.push_back({fmt::format("random tree {}", seed), testing::random_tree(seed, 12)});
  }
  return cases;
}

// One element, primes, and sizes around the number of workers.
const std::vector<std::int64_t> kSizes = {1, 2, 3, 7, 12, 13, 14, 1009, 65536};

class AveragesTest : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(AveragesTest, OfEveryoneOnEveryNetworkEqualTheReference) {
  const at::ScalarType type = GetParam();
  for (const Case& network : networks()) {
    const int size = network.topology.workers();
    const Group group = everybody(size);
    run_ranks(size, [&](World& world) {
      ChainBuilder builder(world, network.topology);
      builder.add(lower_to_ring(group, network.topology), size);
      builder.add(lower_hierarchically(group, network.topology), size);
      builder.add(lower_to_servers(group, network.topology), size);
      const SharedChains chains = build(builder);
      Engine engine(explained_by(world), nullptr);
      for (const std::int64_t length : kSizes) {
        std::vector<at::Tensor> vectors;
        for (const auto& chain : chains) {
          vectors.push_back(input(world.rank(), length, type));
          engine.average(vectors.back(), chain, 0, Seconds(0));
        }
        require_done(engine.wait());
        for (const at::Tensor& vector : vectors) {
          expect_close(vector, expected_average(group, length, type),
                       fmt::format("{}, {} elements, rank {}", network.name, length, world.rank()));
        }
      }
    });
  }
}

TEST_P(AveragesTest, OfGroupsOfEverySizeEqualTheReference) {
  const at::ScalarType type = GetParam();
  const Topology topology = testing::racks(2, 4, 4, 1);
  run_ranks(8, [&](World& world) {
    // Groups of 2 to 8 that span the racks in different ways; those who are in none take no part.
    const std::vector<Group> groups = {
        {0, 1},      {3, 4}, {1, 2, 5}, {0, 4, 5, 6}, {0, 1, 2, 3, 7}, {1, 2, 3, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6},
        everybody(8)};
    ChainBuilder builder(world, topology);
    for (const Group& group : groups) {
      builder.add(lower_hierarchically(group, topology), static_cast<int>(group.size()));
    }
    const SharedChains chains = build(builder);
    Engine engine(explained_by(world), nullptr);
    for (std::size_t index = 0; index < groups.size(); ++index) {
      const Group& group = groups[index];
      const bool member = std::find(group.begin(), group.end(), world.rank()) != group.end();
      const at::Tensor before = input(world.rank(), 1009, type);
      const at::Tensor vector = before.clone();
      if (member) engine.average(vector, chains[index], 0, Seconds(0));
      require_done(engine.wait());
      expect_close(vector, member ? expected_average(group, 1009, type) : before.to(at::kDouble),
                   fmt::format("group {} at rank {}", index, world.rank()));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, AveragesTest, ::testing::Values(at::kFloat, at::kDouble, at::kHalf),
                         [](const auto& setting) { return std::string(c10::toString(setting.param)); });

TEST(EngineTest, ManyAveragesAtOnceStayMatched) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  const Group group = everybody(6);
  run_ranks(6, [&](World& world) {
    ChainBuilder builder(world, topology);
    builder.add(lower_hierarchically(group, topology), 6);
    builder.add(lower_to_ring(group, topology), 6);
    const SharedChains chains = build(builder);
    Engine engine(explained_by(world), nullptr);
    std::vector<at::Tensor> vectors;
    for (int number = 0; number < 200; ++number) {
      vectors.push_back(at::full({101 + number}, static_cast<double>(number * 10 + world.rank())));
      engine.average(vectors.back(), chains[static_cast<std::size_t>(number % 3 == 0)], number, Seconds(0));
    }
    require_done(engine.wait());
    for (int number = 0; number < 200; ++number) {
      EXPECT_TRUE(at::allclose(vectors[static_cast<std::size_t>(number)], at::full({101 + number}, number * 10 + 2.5)))
          << "average " << number << " at rank " << world.rank();
    }
  });
}

TEST(EngineTest, MembersEndWithTheSameBits) {
  const Topology topology = testing::random_tree(7, 9);
  const int size = topology.workers();
  std::vector<at::Tensor> results(static_cast<std::size_t>(size));
  run_ranks(size, [&](World& world) {
    ChainBuilder builder(world, topology);
    builder.add(lower_hierarchically(everybody(size), topology), size);
    const SharedChains chains = build(builder);
    Engine engine(explained_by(world), nullptr);
    const at::Tensor vector = input(world.rank(), 5003, at::kFloat);
    engine.average(vector, chains.front(), 0, Seconds(0));
    require_done(engine.wait());
    results[static_cast<std::size_t>(world.rank())] = vector;
  });
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results.front()));
}

TEST(EngineTest, CountsTheBytesThatTheRingSends) {
  run_ranks(4, [&](World& world) {
    const Topology topology = testing::flat(4);
    ChainBuilder builder(world, topology);
    builder.add(lower_to_ring(everybody(4), topology), 4);
    const SharedChains chains = build(builder);
    Engine engine(explained_by(world), nullptr);
    engine.average(at::zeros({1000}), chains.front(), 0, Seconds(0));
    require_done(engine.wait());
    EXPECT_EQ(engine.take_bytes_sent(), 2 * 3 * 1000 * 4 / 4);
    EXPECT_EQ(engine.take_bytes_sent(), 0);
  });
}

// As where training fails between the start of an average and its end. Under AddressSanitizer, a chain that was used
// after its end would show.
TEST(EngineTest, EndsWhatIsUnderWayWithoutItsOwner) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  std::vector<at::Tensor> results(4);
  run_ranks(4, [&](World& world) {
    const at::Tensor vector = at::full({100'000}, static_cast<double>(world.rank()));
    results[static_cast<std::size_t>(world.rank())] = vector;
    ChainBuilder builder(world, topology);
    builder.add(lower_hierarchically(everybody(4), topology), 4);
    Engine engine(explained_by(world), nullptr);
    engine.average(vector, build(builder).front(), 0, Seconds(0));
  });
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, at::full({100'000}, 1.5)));
}

TEST(EngineTest, APeerThatGoesAwayEndsTheWaiting) {
  const Topology topology = testing::flat(3);
  const auto start = Clock::now();
  EXPECT_THROW(
      run_ranks(3,
                [&](World& world) {
                  ChainBuilder builder(world, topology);
                  builder.add(lower_to_ring(everybody(3), topology), 3);
                  const SharedChains chains = build(builder);
                  if (world.rank() == 2) {
                    world.report_failure("lost its data");
                    world.abandon_channels();
                    return;
                  }
                  Engine engine(explained_by(world), nullptr);
                  engine.average(at::zeros({100}), chains.front(), 0, Seconds(0));
                  try {
                    require_done(engine.wait());
                    ADD_FAILURE() << "an average without rank 2";
                  } catch (const PeerError& error) {
                    EXPECT_NE(std::string(error.what()).find("rank 2 failed: lost its data"), std::string::npos)
                        << error.what();
                    throw;
                  }
                }),
      PeerError);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20)) << "waited for the timeout of 30 s";
}

}  // namespace
}  // namespace dssync
