// Workers that hear of the same network: they change their plans together, and none waits for one that is gone. What
// the network is like comes from the monitor's simulation, of which every worker has its own, equal one.
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/live/adaptation.h"
#include "dssync/monitor/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Ne;
using testing::run_ranks;
using ::testing::SizeIs;
using testing::two_racks;

constexpr double kBytes = 8e6;
constexpr int kAdaptingWorkers = 8;
constexpr std::chrono::milliseconds kPace{4};  // of an iteration, so that the background gets its turn

// One worker that trains in the simulation.
class SimulatedWorker {
 public:
  SimulatedWorker(World& world, const Topology& nominal, const AdaptationOptions& options)
      : world_(world),
        program_(make_plan_program(
            world, Planner(nominal, options.bytes, 0, options.replicas).require(Adaptation::first_limit(options)),
            nominal, options.bytes)),
        simulation_(nominal, options.bytes),
        adaptation_(world, nominal, options, program_) {
    follow(program_);
  }

  // Returns the change that took effect.
  std::optional<ProgramChange> iterate(double disagreement = 0, double learning_rate = 0) {
    const std::optional<ProgramChange> change = adaptation_.change_at(iteration_);
    if (change) follow(change->program);
    SampleBatch samples;
    simulation_.run(iteration_, samples);
    adaptation_.add(record_of(samples, disagreement, learning_rate));
    ++iteration_;
    std::this_thread::sleep_for(kPace);
    return change;
  }

  // As an average of all would: nobody ends while others train.
  ~SimulatedWorker() {
    if (std::uncaught_exceptions() == 0) world_.barrier("trained");
  }

  void change_network(const Topology& network) { simulation_.change_network(simulation_.now(), network); }
  std::int64_t iteration() const { return iteration_; }
  std::vector<Channel> channels() const {
    std::vector<Channel> result;
    for (const Chain& chain : program_->chains) {
      for (const Channel& channel : channels_of(chain)) result.push_back(channel);
    }
    return result;
  }

 private:
  void follow(std::shared_ptr<const PlanProgram> program) {
    program_ = std::move(program);
    simulation_.adopt(program_->table);
  }

  IterationRecord record_of(const SampleBatch& samples, double disagreement, double learning_rate) const {
    IterationRecord record{
        .iteration = iteration_, .disagreement = disagreement, .parameter_norm = 1, .learning_rate = learning_rate};
    // Clocks are weeks apart, some before their epoch, and run at different rates.
    const Clock::time_point start{std::chrono::hours(500 * (world_.rank() - 3)) + iteration_ * kPace};
    const double rate = 1 + 0.01 * (world_.rank() % 3 - 1);
    for (const StageSample& sample : samples.stages) {
      if (sample.rank != world_.rank()) continue;
      const auto length = std::chrono::duration_cast<Clock::duration>(Seconds(rate * sample.seconds));
      record.uses.push_back({sample.stage, start, start + length, static_cast<std::int64_t>(sample.bytes)});
    }
    for (const WorkerSample& sample : samples.workers) {
      if (sample.rank == world_.rank()) record.compute_seconds = sample.compute_seconds;
    }
    return record;
  }

  World& world_;
  std::shared_ptr<const PlanProgram> program_;
  testing::TrainingSimulation simulation_;
  std::int64_t iteration_ = 0;
  Adaptation adaptation_;
};

// What all workers saw, by rank.
class Seen {
 public:
  void add(Rank rank, const ProgramChange& change) {
    std::string text = std::to_string(change.why.iteration) + ": " + change.why.explanation;
    for (const Round& round : change.program->plan.rounds) text += " " + round.label;
    const std::lock_guard lock(mutex_);
    changes_[rank].push_back(text);
    if (rank == 0) uplinks_.push_back(change.why.network.link(change.why.network.node(1).up).capacity.bytes_per_second);
  }
  const std::map<Rank, std::vector<std::string>>& changes() const { return changes_; }
  const std::vector<double>& uplinks() const {
    return uplinks_;
  }  // of the first rack, as the new plans take them to be

 private:
  std::mutex mutex_;
  std::map<Rank, std::vector<std::string>> changes_;
  std::vector<double> uplinks_;
};

TEST(AdaptationTest, AllWorkersChangeInTheSameIteration) {
  Seen seen;
  run_ranks(kAdaptingWorkers, [&](World& world) {
    SimulatedWorker worker(world, two_racks(200), {.bytes = kBytes});
    // Iterations are short here, so many may pass before a change.
    const auto iterate_until_change = [&] {
      for (const std::int64_t last = worker.iteration() + 2000; worker.iteration() < last;) {
        const std::optional<ProgramChange> change = worker.iterate();
        if (!change) continue;
        seen.add(world.rank(), *change);
        return;
      }
    };
    while (worker.iteration() < 20) worker.iterate();
    worker.change_network(two_racks(25));
    iterate_until_change();
    worker.change_network(two_racks(200));
    iterate_until_change();
  });
  ASSERT_THAT(seen.changes(), SizeIs(kAdaptingWorkers));
  const std::vector<std::string>& first = seen.changes().at(0);
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_THAT(first[0], HasSubstr("rack0 up 200 Mbit/s -> "));
  EXPECT_NEAR(seen.uplinks()[0], 25e6 / 8, 0.3 * 25e6 / 8);
  EXPECT_GT(seen.uplinks()[1], 2 * 25e6 / 8);
  for (const auto& [rank, changes] : seen.changes()) EXPECT_EQ(changes, first) << "rank " << rank;
}

TEST(AdaptationTest, NothingChangesWhereNothingHappens) {
  Seen seen;
  run_ranks(kAdaptingWorkers, [&](World& world) {
    SimulatedWorker worker(world, two_racks(50), {.bytes = kBytes});
    while (worker.iteration() < 40) {
      if (const auto change = worker.iterate()) seen.add(world.rank(), *change);
    }
  });
  EXPECT_THAT(seen.changes(), SizeIs(0));
}

TEST(AdaptationTest, NewPlansKeepTheExactRegions) {
  const std::vector<Group> racks = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  std::mutex mutex;
  std::vector<Plan> plans;
  run_ranks(kAdaptingWorkers, [&](World& world) {
    SimulatedWorker worker(world, two_racks(50),
                           {.bytes = kBytes / 10, .disagreement = 0.5, .replicas = racks, .steer = true});
    while (worker.iteration() < 5000) {
      const auto change = worker.iterate(1e-9, 0.01);
      if (!change) continue;
      const std::lock_guard lock(mutex);
      plans.push_back(change->program->plan);
      break;
    }
  });
  ASSERT_THAT(plans, SizeIs(kAdaptingWorkers));
  for (const Plan& plan : plans) {
    EXPECT_EQ(plan.replicas, racks);
    EXPECT_EQ(plan.rounds, plans.front().rounds);
    EXPECT_GT(plan.rounds.size(), 1U);
  }
}

// A limit that starts tight becomes looser where replicas stay close together, and the plan with it.
TEST(AdaptationTest, TheLimitOnSIsSteered) {
  Seen seen;
  std::mutex mutex;
  std::map<Rank, std::vector<double>> disagreements;
  run_ranks(kAdaptingWorkers, [&](World& world) {
    SimulatedWorker worker(world, two_racks(50), {.bytes = kBytes / 10, .disagreement = 0.5, .steer = true});
    for (int changes = 0; changes < 2 && worker.iteration() < 5000;) {
      const auto change = worker.iterate(1e-9, 0.01);
      if (!change) continue;
      ++changes;
      seen.add(world.rank(), *change);
      const std::lock_guard lock(mutex);
      disagreements[world.rank()].push_back(change->program->plan.mixing.steady_disagreement);
    }
  });
  ASSERT_THAT(seen.changes(), SizeIs(kAdaptingWorkers));
  const std::vector<double>& first = disagreements.at(0);
  EXPECT_THAT(first, SizeIs(2));
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_THAT(first, Each(::testing::Le(0.5 + 1e-9)));
  for (const auto& [rank, values] : disagreements) EXPECT_EQ(values, first) << "rank " << rank;
  for (const auto& [rank, changes] : seen.changes()) EXPECT_EQ(changes, seen.changes().at(0)) << "rank " << rank;
}

TEST(AdaptationTest, GroupsOfAnOldPlanAreReleased) {
  run_ranks(kAdaptingWorkers, [&](World& world) {
    SimulatedWorker worker(world, two_racks(200), {.bytes = kBytes});
    std::vector<Channel> old = worker.channels();
    while (worker.iteration() < 20) worker.iterate();
    worker.change_network(two_racks(25));
    while (worker.iteration() < 5000 && !worker.iterate()) continue;
    for (const Channel& channel : worker.channels()) std::erase(old, channel);
    ASSERT_FALSE(old.empty());
    const auto is_released = [&](const Channel& channel) {
      return static_cast<std::ptrdiff_t>(channel.use_count()) == std::count(old.begin(), old.end(), channel);
    };
    while (worker.iteration() < 5000 && !std::all_of(old.begin(), old.end(), is_released)) worker.iterate();
    EXPECT_TRUE(std::all_of(old.begin(), old.end(), is_released));
  });
}

// One of them may use smaller groups only, so that it plans differently, or sees no reason to.
TEST(AdaptationTest, DifferentDecisionsAreNoticed) {
  std::mutex mutex;
  std::vector<std::string> messages;
  run_ranks(4, [&](World& world) {
    const Topology nominal = testing::racks(2, 2, 25e6, 25e6);
    const std::string message = testing::message_of<AgreementError>([&] {
      SimulatedWorker worker(world, nominal, {.bytes = kBytes, .group_limit = world.rank() == 2 ? 2 : 0});
      while (worker.iteration() < 20) worker.iterate();
      worker.change_network(testing::racks(2, 2, 25e6, 2.5e6));
      while (worker.iteration() < 5000) worker.iterate();
    });
    const std::lock_guard lock(mutex);
    messages.push_back(message);
  });
  ASSERT_THAT(messages, SizeIs(4));
  EXPECT_THAT(messages, Each(Ne("no exception")));  // who notices first may cut off the others
  EXPECT_THAT(messages, Contains(HasSubstr("ranks 0 and 2 decided differently from the same figures")));
}

// Before anything has happened, and just when the plan changes.
TEST(AdaptationTest, AWorkerThatFailsEndsTheOthers) {
  for (const bool at_change : {false, true}) {
    SCOPED_TRACE(at_change);
    std::mutex mutex;
    std::map<Rank, std::string> messages;
    run_ranks(4, [&](World& world) {
      const std::string message = testing::message_of<PeerError>([&] {
        SimulatedWorker worker(world, testing::racks(2, 2, 25e6, 25e6), {.bytes = kBytes});
        while (worker.iteration() < 10) worker.iterate();
        worker.change_network(testing::racks(2, 2, 25e6, 2.5e6));
        while (worker.iteration() < 5000) {
          const bool changed = at_change && worker.iterate().has_value();
          if (world.rank() == 2 && changed == at_change) {
            world.report_failure("no more memory");
            throw Error("no more memory");
          }
          if (!at_change) worker.iterate();
        }
      });
      const std::lock_guard lock(mutex);
      messages[world.rank()] = message;
    });
    EXPECT_EQ(messages[2], "another exception: no more memory");
    for (const Rank rank : {0, 1, 3}) {
      EXPECT_THAT(messages[rank], HasSubstr("rank 2 failed: no more memory")) << "rank " << rank;
    }
  }
}

// As Python does it: no exception is under way, but the iteration was begun and is never handed in.
TEST(AdaptationTest, AnIterationThatIsNeverFinishedEndsTheOthers) {
  run_ranks(4, [&](World& world) {
    const Topology nominal = testing::racks(2, 2, 25e6, 5e6);
    const AdaptationOptions options{.bytes = kBytes};
    const auto program = make_plan_program(world, *Planner(nominal, kBytes).best(0.5), nominal, kBytes);
    Adaptation adaptation(world, nominal, options, program);
    const auto iterate = [&](std::int64_t iteration) {
      adaptation.change_at(iteration);
      if (world.rank() == 2 && iteration == 10) return false;
      adaptation.add({.iteration = iteration, .compute_seconds = 1});
      return true;
    };
    if (world.rank() == 2) {
      for (std::int64_t iteration = 0; iterate(iteration);) ++iteration;
      world.report_failure("no more memory");
      return;
    }
    const std::string message = testing::message_of<PeerError>([&] {
      for (std::int64_t iteration = 0; iteration < 5000; ++iteration) {
        iterate(iteration);
        std::this_thread::sleep_for(kPace);
      }
    });
    EXPECT_THAT(message, HasSubstr("rank 2 failed: no more memory"));
  });
}

// Few workers and many go different ways. Rows are empty at first, then longer, then shorter.
TEST(SideChannelTest, EveryoneGetsWhatEveryoneGave) {
  for (const int workers : {5, 17}) {
    run_ranks(workers, [workers](World& world) {
      SideChannel side(world, at::kCPU);
      for (const int most : {1, 3, 7, 2, 1}) {
        const auto row = [most](Rank rank) {
          return std::vector<double>(static_cast<std::size_t>(rank % most), rank + 0.5);
        };
        const std::vector<std::vector<double>> all = side.gather(row(world.rank()));
        ASSERT_THAT(all, SizeIs(workers));
        for (Rank rank = 0; rank < workers; ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], row(rank));
      }
    });
  }
}

// A worker may send and receive at the same time, and need do neither.
TEST(SideChannelTest, SendersTellHowLongAProbeTook) {
  run_ranks(4, [](World& world) {
    SideChannel side(world, at::kCPU);
    const Probe probe{.transfers = {{0, 1, 1e6}, {1, 2, 1000}, {2, 0, 1}}, .turns = 2};
    for (std::int64_t iteration = 3; iteration < 6; ++iteration) {
      const std::vector<ProbeSample> samples = side.run(probe, iteration);
      ASSERT_THAT(samples, SizeIs(world.rank() < 3 ? 2 : 0));
      int turn = 0;
      for (const ProbeSample& sample : samples) {
        EXPECT_EQ(sample.turn, turn++);
        EXPECT_EQ(sample.iteration, iteration);
        EXPECT_EQ(sample.from, world.rank());
        EXPECT_EQ(sample.to, (world.rank() + 1) % 3);
        EXPECT_EQ(sample.bytes, probe.transfers[static_cast<std::size_t>(world.rank())].bytes);
        EXPECT_GT(sample.seconds, 0);
      }
    }
  });
}

// Adapting alone changes nothing about what is computed.
TEST(AdaptationTest, WatchingDoesNotChangeAverages) {
  const Topology topology = testing::racks(2, 2, 25e9, 5e9);
  std::mutex mutex;
  std::map<std::pair<bool, Rank>, at::Tensor> results;
  for (const bool adapt : {false, true}) {
    run_ranks(4, [&](World& world) {
      const at::Tensor x = at::zeros({1009}, at::kDouble);
      SyncOptions options;
      options.adapt = adapt;
      const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
      for (std::int64_t iteration = 0; iteration < 12; ++iteration) {
        sync->before_forward();
        sync->after_backward();
        x.add_(at::sin(at::arange(1009, at::kDouble) * (1.0 + world.rank()) + static_cast<double>(iteration)));
        sync->after_step();
      }
      EXPECT_TRUE(sync->take_plan_changes().empty());
      const std::lock_guard lock(mutex);
      results[{adapt, world.rank()}] = x;
    });
  }
  for (Rank rank = 0; rank < 4; ++rank) EXPECT_TRUE(at::equal(results[{false, rank}], results[{true, rank}]));
}

TEST(AdaptationTest, OptionsThatCannotGoTogether) {
  run_ranks(1, [](World& world) {
    const at::Tensor x = at::zeros({4});
    const Topology topology = testing::racks(1, 1, 1e6, 1e6);
    const auto message = [&](const SyncOptions& options) {
      return testing::message_of<InputError>([&] {
        make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
      });
    };
    SyncOptions published;
    published.adapt = published.published = true;
    EXPECT_THAT(message(published), HasSubstr("adapt: only plans that ds-sync makes itself"));
    SyncOptions unwatched;
    unwatched.steer = true;
    EXPECT_THAT(message(unwatched), HasSubstr("steer: expected adapt"));
    SyncOptions blind;
    blind.adapt = blind.steer = true;
    EXPECT_THAT(message(blind), HasSubstr("steer: the replica has no learning_rate"));
  });
}

}  // namespace
}  // namespace dssync
