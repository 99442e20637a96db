#include "dssync/comm/world.h"

#include <atomic>
#include <string>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::message_of;
using testing::run_ranks;

TEST(WorldTest, AMissingWorkerIsNamedOnEveryOther) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> messages(2);
  std::vector<std::thread> threads;
  for (const int rank : {0, 2}) {
    threads.emplace_back([&, rank] {
      messages[rank == 0 ? 0 : 1] =
          message_of<PeerError>([&] { World(store, {.rank = rank, .size = 3, .timeout = milliseconds(300)}); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(messages[0], "rank 0: waiting for all 3 workers: rank 1 did not come within 0.3 s");
  EXPECT_EQ(messages[1], "rank 2: waiting for all 3 workers: rank 1 did not come within 0.3 s");
}

TEST(WorldTest, ARankIsTakenOnce) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  const World first(store, {.rank = 0, .size = 1});
  EXPECT_THAT(message_of<InputError>([&] { World(store, {.rank = 0, .size = 1}); }),
              HasSubstr("rank 0 has joined already"));
  EXPECT_THAT(message_of<InputError>([&] { World(store, {.rank = 4, .size = 4}); }),
              HasSubstr("rank 4 is not one of 4"));
}

TEST(WorldTest, EqualLinesAgree) {
  run_ranks(5, [](World& world) {
    world.agree("model", {"a", "b"});
    world.agree("plan", {});
  });
}

TEST(WorldTest, ADifferenceIsNamedOnEveryWorker) {
  std::atomic<int> informed = 0;
  run_ranks(4, [&](World& world) {
    std::vector<std::string> lines = {"weight Float [10, 6]", "bias Float [10]"};
    if (world.rank() == 2) lines[0] = "weight Float [10, 5]";
    if (world.rank() == 3) lines.pop_back();
    const std::string message = message_of<AgreementError>([&] { world.agree("model", lines); });
    EXPECT_THAT(message, HasSubstr("the workers differ in their model"));
    EXPECT_THAT(message, HasSubstr("rank 2 has 'weight Float [10, 5]' where rank 0 has 'weight Float [10, 6]'"));
    EXPECT_THAT(message, HasSubstr("rank 3 has nothing where rank 0 has 'bias Float [10]'"));
    ++informed;
  });
  EXPECT_EQ(informed, 4);
}

TEST(WorldTest, ABarrierWaitsForAll) {
  std::atomic<int> arrived = 0;
  run_ranks(4, [&](World& world) {
    ++arrived;
    world.barrier("here");
    EXPECT_EQ(arrived, 4);
  });
}

TEST(WorldTest, WhoDoesNotComeToTheBarrierIsNamed) {
  run_ranks(
      2,
      [&](World& world) {
        if (world.rank() == 1) return;
        EXPECT_THAT(message_of<PeerError>([&] { world.barrier("there"); }),
                    HasSubstr("waiting at 'there': rank 1 did not come within 0.2 s"));
      },
      milliseconds(200));
}

TEST(WorldTest, OnlyMembersMakeAChannelAndItIsMadeOnce) {
  run_ranks(3, [&](World& world) {
    if (world.rank() == 1) {
      EXPECT_THROW(world.channel({0, 2}, "test"), Error);
      return;
    }
    const Channel channel = world.channel({2, 0}, "test");
    EXPECT_EQ(channel->getRank(), world.rank() == 2 ? 0 : 1) << "numbers follow the order of the members";
    EXPECT_EQ(channel, world.channel({2, 0}, "test"));
  });
}

TEST(WorldTest, ChannelsCanBeMadeAgainAfterTheyWereGivenUp) {
  run_ranks(2, [&](World& world) {
    const Channel old = world.channel({0, 1}, "test");
    world.barrier("connected");
    world.abandon_channels();
    const Channel fresh = world.channel({0, 1}, "test");
    EXPECT_NE(fresh, old);
    at::Tensor tensor = at::ones({3});
    std::vector<at::Tensor> tensors = {tensor};
    fresh->allreduce(tensors)->wait();
    EXPECT_EQ(tensor.sum().item<float>(), 6);
    world.barrier("done");
  });
}

TEST(WorldTest, ReleasedChannelsAreMadeAnew) {
  run_ranks(3, [&](World& world) {
    for (int turn = 0; turn < 3; ++turn) {
      const Channel channel = world.channel({2, 0, 1}, "test");
      at::Tensor tensor = at::full({3}, world.rank() + turn);
      std::vector<at::Tensor> tensors = {tensor};
      channel->allreduce(tensors)->wait();
      EXPECT_EQ(tensor.sum().item<std::int64_t>(), 9 + 9 * turn);
      EXPECT_EQ(channel, world.channel({2, 0, 1}, "test"));
      world.barrier("used " + std::to_string(turn));
      world.release(channel);
      world.release(channel);  // once is enough
    }
  });
}

TEST(WorldTest, APublishedLossExplainsAFailure) {
  run_ranks(2, [&](World& world) {
    if (world.rank() == 1) world.report_failure("the disk is full");
    world.barrier("reported");
    if (world.rank() == 0) {
      EXPECT_STREQ(world.explain("averaging", {0, 1}, "Connection closed by peer").what(),
                   "rank 0: averaging: rank 1 failed: the disk is full");
    }
  });
}

}  // namespace
}  // namespace dssync
