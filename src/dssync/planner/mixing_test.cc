#include "dssync/planner/mixing.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/planner/dense.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/rounds.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

Round of(const Division& groups, int workers) { return make_round(groups, Replicas(testing::flat(workers))); }

// Ranks [first, first + count).
std::vector<int> run(int first, int count) {
  std::vector<int> result;
  for (int i = 0; i < count; ++i) {
    result.push_back(first + i);
  }
  return result;
}

Round nobody(int workers) { return of({}, workers); }
Round all(int workers) { return of({run(0, workers)}, workers); }

Round each_rack(int racks, int size) {
  Division groups;
  for (int r = 0; r < racks; ++r) {
    groups.push_back(run(r * size, size));
  }
  return of(groups, racks * size);
}

Schedule repeated(const Round& often, int times, const Round& last) {
  Schedule schedule(static_cast<std::size_t>(times), often);
  schedule.push_back(last);
  return schedule;
}

// One delegate of each rack crosses, another one in every iteration; the others average inside.
Schedule delegates(int racks, int size) {
  Schedule schedule;
  for (int turn = 0; turn < size; ++turn) {
    Division groups(static_cast<std::size_t>(racks) + 1);
    for (int worker = 0; worker < racks * size; ++worker) {
      const bool crosses = worker % size == turn;
      groups[crosses ? static_cast<std::size_t>(racks) : static_cast<std::size_t>(worker / size)].push_back(worker);
    }
    schedule.push_back(of(groups, racks * size));
  }
  return schedule;
}

Schedule grid(int workers, int group) {
  Schedule schedule;
  for (const Division& division : mixing_rounds(workers, group)) {
    schedule.push_back(of(division, workers));
  }
  return schedule;
}

struct Reference {
  std::string name;
  Schedule schedule;
  int workers;
  double disagreement;
  double cycle_norm;
};

// Named values that were known before the code was written.
std::vector<Reference> references() {
  return {
      {"hypercube of pairs", grid(8, 2), 8, 0.5, 0},
      {"local SGD, every 4th", repeated(nobody(8), 3, all(8)), 8, 1.3125, 0},
      {"local SGD, every 8th", repeated(nobody(8), 7, all(8)), 8, 3.0625, 0},
      {"rack average, all every 2nd", repeated(each_rack(2, 4), 1, all(8)), 8, 0.0625, 0},
      {"rack average, all every 4th", repeated(each_rack(2, 4), 3, all(8)), 8, 0.1875, 0},
      {"rack average, all every 8th", repeated(each_rack(2, 4), 7, all(8)), 8, 0.4375, 0},
      {"delegates, 2 racks x 4", delegates(2, 4), 8, 0.366, 0.296},
      {"delegates, 4 racks x 8", delegates(4, 8), 32, 0.385, 0.340},
  };
}

TEST(MixingTest, ReferenceValues) {
  for (const Reference& reference : references()) {
    const Mixing mixing = measure_mixing(reference.schedule, reference.workers);
    EXPECT_NEAR(mixing.steady_disagreement, reference.disagreement, 1e-3) << reference.name;
    EXPECT_NEAR(mixing.cycle_norm, reference.cycle_norm, 1e-3) << reference.name;
  }
}

// delegates(4, 8) has 0.340.
TEST(MixingTest, NormAboveALimitIsOnlyKnownToBeAbove) {
  const Schedule schedule = delegates(4, 8);
  const double norm = cycle_norm(schedule, 32);
  EXPECT_NEAR(norm, 0.340, 1e-3);
  EXPECT_EQ(cycle_norm(schedule, 32, 0.35), norm);
  EXPECT_GT(cycle_norm(schedule, 32, 0.3), 0.3);
  EXPECT_LE(cycle_norm(schedule, 32, 0.3), norm * (1 + 1e-12));
}

TEST(MixingTest, RacksPairedTheSameWayNeverSettle) {
  const Schedule schedule{each_rack(4, 4), each_rack(2, 8)};
  const Mixing mixing = measure_mixing(schedule, 16);
  EXPECT_EQ(mixing.cycle_norm, 1);
  EXPECT_TRUE(std::isinf(mixing.steady_disagreement));
  EXPECT_FALSE(mixing.exact());
}

TEST(MixingTest, SingleWorkerAgreesWithItself) {
  const Mixing mixing = measure_mixing({nobody(1)}, 1);
  EXPECT_EQ(mixing.cycle_norm, 0);
  EXPECT_EQ(mixing.steady_disagreement, 0);
}

void expect_dense(const Schedule& schedule, int workers, const std::string& what) {
  const Mixing mixing = measure_mixing(schedule, workers);
  const Mixing dense = testing::dense_mixing(schedule, workers);
  EXPECT_NEAR(mixing.cycle_norm, dense.cycle_norm, 1e-6) << what;
  if (std::isinf(dense.steady_disagreement)) {
    EXPECT_TRUE(std::isinf(mixing.steady_disagreement)) << what;
  } else {
    EXPECT_NEAR(mixing.steady_disagreement, dense.steady_disagreement, 1e-8 * (1 + dense.steady_disagreement)) << what;
    EXPECT_LE(disagreement_floor(schedule, workers), dense.steady_disagreement + 1e-9) << what;
  }
}

TEST(MixingTest, AgreesWithDenseMatricesOnGrids) {
  for (const int workers : {2, 3, 5, 7, 8, 12, 13, 24, 31, 64}) {
    for (const int group : {2, 3, 4, 8}) {
      expect_dense(grid(workers, group), workers, std::to_string(workers) + " in groups of " + std::to_string(group));
    }
  }
}

// Random divisions commute with nothing.
TEST(MixingTest, AgreesWithDenseMatricesOnRandomSchedules) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const int workers = 2 + static_cast<int>(random() % 30);
    Schedule schedule;
    for (int t = 1 + static_cast<int>(random() % 6); t > 0; --t) {
      Division groups(1 + random() % static_cast<unsigned>(workers));
      for (int worker = 0; worker < workers; ++worker) {
        groups[random() % groups.size()].push_back(worker);
      }
      std::erase_if(groups, [](const std::vector<int>& group) { return group.empty(); });
      schedule.push_back(of(groups, workers));
    }
    expect_dense(schedule, workers, "trial " + std::to_string(trial));
  }
}

TEST(MixingTest, UnevenGridLeavesLittle) {
  for (int workers = 2; workers <= 64; ++workers) {
    for (int group = 3; group <= 8; ++group) {
      EXPECT_LE(measure_mixing(grid(workers, group), workers).cycle_norm, 0.36) << workers << " " << group;
    }
  }
}

// Beyond the dense size S is simulated. What the uneven grid leaves over from one cycle to the next adds little to the
// floor.
TEST(MixingTest, SimulationAgreesWithTheFloorOfALargeNetwork) {
  const Schedule schedule = grid(601, 25);
  const double floor = disagreement_floor(schedule, 601);
  const double norm = measure_mixing(schedule, 601).cycle_norm;
  const double simulated = steady_disagreement(schedule, 601);
  EXPECT_GT(norm, 0);
  EXPECT_GT(simulated, floor * 0.99);
  EXPECT_LT(simulated, floor * 1.2);
}

TEST(ScheduleTest, RefusesWhatIsNoDivision) {
  const auto message = [](const Schedule& schedule) {
    try {
      check_schedule(schedule, 3);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({{"", {{0, 1}, {2}}}}), "");
  EXPECT_EQ(message({}), "a schedule needs at least one round");
  EXPECT_EQ(message({{"", {{0, 1}, {2}}}, {"", {{0, 1}, {1, 2}}}}), "round 1 has rank 1 in two groups");
  EXPECT_EQ(message({{"", {{0, 3}}}}), "round 0 names rank 3, but there are ranks 0 to 2");
  EXPECT_EQ(message({{"", {{0, 2}}}}), "round 0 divides 2 of 3 workers");
}

}  // namespace
}  // namespace dssync
