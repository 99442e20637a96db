// asp and ssp with one worker that is deliberately slow. No clock is compared: a slow worker is one that waits for a
// signal of the others.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;

// How many iterations each worker has begun to push, and has done, for all to see.
class Scoreboard {
 public:
  explicit Scoreboard(std::size_t workers) : begun_(workers), done_(workers) {}

  void begins(int rank) {
    const std::lock_guard lock(mutex_);
    ++begun_[static_cast<std::size_t>(rank)];
  }

  // Returns by how much this worker is ahead of the slowest. What no server can know of yet does not count as begun.
  std::int64_t finished(int rank) {
    const std::lock_guard lock(mutex_);
    const std::int64_t mine = ++done_[static_cast<std::size_t>(rank)];
    changed_.notify_all();
    return mine - *std::min_element(begun_.begin(), begun_.end());
  }

  // False where that did not happen within the time.
  bool wait_until_all_others_reach(int rank, std::int64_t count, std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] {
      for (std::size_t other = 0; other < done_.size(); ++other) {
        if (static_cast<int>(other) != rank && done_[other] < count) return false;
      }
      return true;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::int64_t> begun_;
  std::vector<std::int64_t> done_;
};

void iterate(Synchronizer& sync, const at::Tensor& x) {
  sync.before_forward();
  sync.after_backward();
  x.add_(1);
  sync.after_step();
}

constexpr int kServedWorkers = 4;

TEST(ParameterServerTest, AspPassesAWorkerThatStands) {
  Scoreboard board(kServedWorkers);
  run_ranks(kServedWorkers, [&](World& world) {
    const at::Tensor x = at::zeros({10});
    const auto sync =
        make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(kServedWorkers), {.method = Method::kAsp});
    // Rank 2 does its first iteration only after all others have done twenty.
    if (world.rank() == 2) {
      ASSERT_TRUE(board.wait_until_all_others_reach(2, 20, std::chrono::seconds(20)));
    }
    for (int iteration = 0; iteration < 20; ++iteration) {
      iterate(*sync, x);
      board.finished(world.rank());
    }
    sync->consolidate();
    EXPECT_TRUE(at::allclose(x, at::full({10}, 20.0))) << "every worker's steps count for one fourth: " << x;
  });
}

TEST(ParameterServerTest, SspStopsAtItsBound) {
  for (const int bound : {0, 1, 3}) {
    Scoreboard board(kServedWorkers);
    std::atomic<std::int64_t> furthest = 0;
    run_ranks(kServedWorkers, [&](World& world) {
      const at::Tensor x = at::zeros({7});
      const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(kServedWorkers),
                                          {.method = Method::kSsp, .staleness = bound});
      for (int iteration = 0; iteration < 12; ++iteration) {
        // Rank 1 goes on when the others have run up to the bound, which they must be able to do; and they cannot come
        // further, so a look at the distance after each iteration finds the largest there is.
        if (world.rank() == 1 && bound > 0) {
          ASSERT_TRUE(board.wait_until_all_others_reach(1, std::min(iteration + bound, 12), std::chrono::seconds(20)));
        }
        board.begins(world.rank());
        iterate(*sync, x);
        const std::int64_t ahead = board.finished(world.rank());
        std::int64_t known = furthest;
        while (ahead > known && !furthest.compare_exchange_weak(known, ahead)) {
        }
      }
      sync->consolidate();
      EXPECT_TRUE(at::allclose(x, at::full({7}, 12.0)));
    });
    EXPECT_EQ(furthest, bound);
  }
}

TEST(ParameterServerTest, BspWaitsForTheSlowWorker) {
  Scoreboard board(kServedWorkers);
  run_ranks(kServedWorkers, [&](World& world) {
    const at::Tensor x = at::zeros({10}).requires_grad_();
    const auto sync =
        make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(kServedWorkers), {.method = Method::kBspRing});
    if (world.rank() == 2) {
      EXPECT_FALSE(board.wait_until_all_others_reach(2, 1, std::chrono::milliseconds(300)))
          << "nobody waited for rank 2";
    }
    sync->before_forward();
    x.sum().backward();
    sync->after_backward();
    sync->after_step();
    board.finished(world.rank());
  });
}

TEST(ParameterServerTest, ReportsItsDistanceFromTheServer) {
  run_ranks(2, [&](World& world) {
    const at::Tensor x = at::zeros({6});
    const auto sync =
        make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(2), {.method = Method::kSsp, .staleness = 0});
    sync->before_forward();
    sync->after_backward();
    x.add_(world.rank() == 0 ? 1 : 3);
    sync->after_step();
    EXPECT_TRUE(at::allclose(x, at::full({6}, 2.0)));
    EXPECT_NEAR(sync->metrics().disagreement, 6, 1e-9);
    // Half of the six floats, pushed to the other's server and answered to the other worker, each after a header.
    EXPECT_EQ(sync->metrics().bytes_sent, 2 * (3 * 4 + 16));
    EXPECT_GT(sync->metrics().wait_seconds, 0);
    EXPECT_LE(sync->metrics().wait_seconds, sync->metrics().sync_seconds);
    sync->consolidate();
  });
}

TEST(ParameterServerTest, AFailedWorkerEndsTheOthers) {
  for (const Method method : {Method::kAsp, Method::kSsp}) {
    std::atomic<int> informed = 0;
    run_ranks(3, [&](World& world) {
      const at::Tensor x = at::zeros({10});
      const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(3), {.method = method});
      if (world.rank() == 1) {
        iterate(*sync, x);
        world.report_failure("lost its data");
        world.abandon_channels();
        return;
      }
      try {
        for (int iteration = 0; iteration < 1'000'000; ++iteration) iterate(*sync, x);
      } catch (const PeerError& error) {
        informed += std::string(error.what()).find("rank 1 failed: lost its data") != std::string::npos;
      }
    });
    EXPECT_EQ(informed, 2) << name_of(method);
  }
}

// Its connections stay open, so only what it told the others can end them. A wait that runs out is no answer: the
// timeout is longer than the test may take.
TEST(ParameterServerTest, AWorkerThatSaysItFailedEndsTheOthers) {
  for (const Method method : {Method::kAsp, Method::kSsp}) {
    std::atomic<int> informed = 0;
    run_ranks(
        3,
        [&](World& world) {
          const at::Tensor x = at::zeros({10});
          const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(3), {.method = method});
          if (world.rank() == 1) {
            world.report_failure("lost its data");
            while (informed < 2) std::this_thread::yield();
            return;
          }
          const std::string message = testing::message_of<PeerError>([&] {
            while (true) iterate(*sync, x);
          });
          EXPECT_THAT(message, HasSubstr("rank 1 failed: lost its data")) << name_of(method);
          ++informed;
        },
        std::chrono::hours(1));
  }
}

TEST(ParameterServerTest, TwoInOneWorldDoNotMix) {
  run_ranks(3, [&](World& world) {
    const at::Tensor x = at::zeros({10});
    const at::Tensor y = at::zeros({10});
    const Topology topology = testing::flat(3);
    const auto first = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.method = Method::kAsp});
    const auto second =
        make_synchronizer(world, {{{"y", y}}, {}, {}}, topology, {.method = Method::kSsp, .staleness = 0});
    for (int iteration = 0; iteration < 20; ++iteration) {
      iterate(*first, x);
      iterate(*second, y);
    }
    first->consolidate();
    second->consolidate();
    EXPECT_TRUE(at::allclose(x, at::full({10}, 20.0)));
    EXPECT_TRUE(at::allclose(y, at::full({10}, 20.0)));
  });
}

TEST(ParameterServerTest, FewerElementsThanServers) {
  run_ranks(5, [&](World& world) {
    const at::Tensor x = at::zeros({2}, at::kDouble);
    const at::Tensor y = at::zeros({1});
    const auto sync = make_synchronizer(world, {{{"x", x}, {"y", y}}, {}, {}}, testing::flat(5),
                                        {.method = Method::kSsp, .staleness = 0});
    iterate(*sync, x);
    EXPECT_TRUE(at::allclose(x, at::ones({2}, at::kDouble)));
    sync->consolidate();
  });
}

}  // namespace
}  // namespace dssync
