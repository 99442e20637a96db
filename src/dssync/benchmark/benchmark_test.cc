#include "dssync/benchmark/benchmark.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/comm/testing.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;

BenchmarkOptions small() {
  BenchmarkOptions options;
  options.methods = {{Method::kBspRing}, {Method::kDsSync}};
  options.sync.state = StateTreatment::kLocal;
  options.bytes = 40'000;
  options.iterations = 3;
  options.repeats = 2;
  return options;
}

std::vector<MethodFigures> measure(const Topology& topology, const BenchmarkOptions& options, const LinkCounter& count,
                                   const BenchmarkWatcher& watcher = {}) {
  std::mutex mutex;
  std::vector<MethodFigures> result;
  testing::run_ranks(topology.workers(), [&](World& world) {
    std::vector<MethodFigures> figures =
        run_benchmark(world, topology, options, count, world.rank() == 0 ? watcher : BenchmarkWatcher{});
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) result = std::move(figures);
  });
  return result;
}

TEST(BenchmarkTest, MeasuresEveryMethodInEveryBlock) {
  const std::vector<MethodFigures> methods = measure(testing::racks(2, 2, 4, 1), small(), nullptr);
  ASSERT_EQ(methods.size(), 2U);
  EXPECT_EQ(methods[0].method.method, Method::kBspRing);
  EXPECT_EQ(methods[1].method.method, Method::kDsSync);
  for (const MethodFigures& method : methods) {
    ASSERT_EQ(method.seconds.size(), 2U);
    EXPECT_GT(method.seconds[0], 0);
    EXPECT_GT(method.predicted_seconds, 0);
    EXPECT_TRUE(method.bytes.empty());
    EXPECT_GE(method.cpu_share, 0);
    EXPECT_LE(method.cpu_share, 1);
  }
  EXPECT_FALSE(methods[0].plan);
  ASSERT_TRUE(methods[1].plan);
  EXPECT_EQ(methods[0].iterations, 3);
  // Whole cycles.
  EXPECT_GE(methods[1].iterations, 3);
  EXPECT_EQ(methods[1].iterations % static_cast<int>(methods[1].plan->rounds.size()), 0);
}

TEST(BenchmarkTest, CountsBytesPerIteration) {
  // The counter is read before and after each of the two blocks of each method, and rises by 600 each time.
  std::atomic<std::uint64_t> carried{0};
  BenchmarkOptions options = small();
  options.methods = {{Method::kBspRing}};
  const std::vector<MethodFigures> methods = measure(testing::flat(2), options, [&] {
    return std::vector<std::uint64_t>{carried += 600, 7};
  });
  ASSERT_EQ(methods.front().bytes.size(), 2U);
  EXPECT_DOUBLE_EQ(methods.front().bytes[0], 200);
  EXPECT_DOUBLE_EQ(methods.front().bytes[1], 0);
}

TEST(BenchmarkTest, TellsHowLongItTakesAndHowFarItIs) {
  BenchmarkOptions options = small();
  options.methods = {{Method::kBspRing}};
  double predicted = 0;
  std::vector<std::pair<std::size_t, int>> seen;
  BenchmarkWatcher watcher;
  watcher.begins = [&](const std::vector<MethodFigures>& methods) {
    ASSERT_EQ(methods.size(), 1U);
    predicted = methods[0].predicted_seconds;
  };
  watcher.iterated = [&](const MethodFigures& method, int iteration) {
    seen.emplace_back(method.seconds.size(), iteration);
  };
  measure(testing::flat(2), options, nullptr, watcher);
  EXPECT_GT(predicted, 0);
  EXPECT_EQ(seen, (std::vector<std::pair<std::size_t, int>>{{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}}));
}

TEST(BenchmarkTest, TheTotalCountsBlocksAndWarmUp) {
  MethodFigures slow;
  slow.iterations = 10;
  slow.predicted_seconds = 2;
  MethodFigures fast;
  fast.iterations = 2;
  fast.predicted_seconds = 0.5;
  // 2 s x (10 x 5 + 3), and 0.5 s x (2 x 5 + 2).
  EXPECT_DOUBLE_EQ(predicted_total({slow, fast}, 5), 112);
}

TEST(BenchmarkTest, ComputingTakesItsTime) {
  BenchmarkOptions options = small();
  options.repeats = 1;
  options.compute = Seconds(0.02);
  for (const MethodFigures& method : measure(testing::flat(2), options, nullptr)) {
    EXPECT_GE(method.seconds.front(), 0.02);
    EXPECT_GE(method.predicted_seconds, 0.02);
  }
}

TEST(BenchmarkTest, ALostWorkerIsNamedAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> messages = testing::run_ranks_losing(
      1, "benchmark", 3, [](World& world) { run_benchmark(world, testing::flat(3), small(), nullptr, {}); });
  for (const std::size_t rank : {0u, 2u}) EXPECT_THAT(messages[rank], HasSubstr("rank 1 failed: lost its data"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "the timeout is 60 s";
}

}  // namespace
}  // namespace dssync
