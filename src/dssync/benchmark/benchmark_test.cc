#include "dssync/benchmark/benchmark.h"

#include <atomic>
#include <mutex>

#include <gtest/gtest.h>

#include "dssync/runtime/testing.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

BenchmarkOptions small() {
  BenchmarkOptions options;
  options.methods = {Method::kBspRing, Method::kDsSync};
  options.sync.state = StateTreatment::kLocal;
  options.bytes = 40'000;
  options.iterations = 3;
  options.repeats = 2;
  return options;
}

std::vector<MethodFigures> measure(const Topology& topology, const BenchmarkOptions& options,
                                   const LinkCounter& count) {
  std::mutex mutex;
  std::vector<MethodFigures> result;
  testing::run_ranks(topology.workers(), [&](World& world) {
    std::vector<MethodFigures> figures = run_benchmark(world, topology, options, count, nullptr);
    const std::lock_guard lock(mutex);
    if (world.rank() == 0) result = std::move(figures);
  });
  return result;
}

TEST(BenchmarkTest, MeasuresEveryMethodInEveryBlock) {
  const std::vector<MethodFigures> methods = measure(testing::racks(2, 2, 4, 1), small(), nullptr);
  ASSERT_EQ(methods.size(), 2U);
  EXPECT_EQ(methods[0].method, Method::kBspRing);
  EXPECT_EQ(methods[1].method, Method::kDsSync);
  for (const MethodFigures& method : methods) {
    ASSERT_EQ(method.seconds.size(), 2U);
    EXPECT_GT(method.seconds[0], 0);
    EXPECT_GT(method.predicted_seconds, 0);
    EXPECT_TRUE(method.bytes.empty());
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
  options.methods = {Method::kBspRing};
  const std::vector<MethodFigures> methods = measure(testing::flat(2), options, [&] {
    return std::vector<std::uint64_t>{carried += 600, 7};
  });
  ASSERT_EQ(methods.front().bytes.size(), 2U);
  EXPECT_DOUBLE_EQ(methods.front().bytes[0], 200);
  EXPECT_DOUBLE_EQ(methods.front().bytes[1], 0);
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

}  // namespace
}  // namespace dssync
