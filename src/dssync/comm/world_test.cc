#include "dssync/comm/world.h"

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "dssync/comm/c10d/store.h"
#include "dssync/comm/testing.h"
#include "dssync/topology/read.h"

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

TEST(WorldTest, EveryKeyCarriesTheRunAndTheEpoch) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  World world(store, {.run = {"job7", 2}, .number = 5});
  EXPECT_EQ(world.membership().run, (RunId{"job7", 2}));
  EXPECT_EQ(world.membership().epoch, 0);
  ASSERT_EQ(world.membership().members.size(), 1u);
  EXPECT_EQ(world.membership().members[0].address, "127.0.0.1");
  world.store()->set("some key", std::vector<std::uint8_t>{1});
  EXPECT_TRUE(store->check({"dssync/job7/2/0/5/some key"}));
}

TEST(WorldTest, AProcessOfAnotherRunIsRefused) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  const World world(store, {.run = {"new", 0}});
  EXPECT_EQ(message_of<InputError>([&] {
              World(store, {.run = {"old", 0}, .store_place = StorePlace{"node1", 29500}});
            }),
            "rank 0 belongs to run old, but the store at node1:29500 serves run new");
}

TEST(WorldTest, AProcessMayHaveSeveralWorlds) {
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      World first(store, {.rank = rank, .size = 2, .number = 0}, store);
      World second(store, {.rank = rank, .size = 2, .number = 1}, store);
      EXPECT_EQ(first.membership().run, second.membership().run);
      first.barrier("here");
      second.barrier("here");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WorldTest, TheNetworkThatWorkersAgreeOnIsTheMemberships) {
  const Topology network = read_yaml_topology("hosts: [{name: \"h[0-1]\", nic: 1Gbps}]", "here").topology;
  const Topology slower = read_yaml_topology("hosts: [{name: \"h[0-1]\", nic: 100Mbps}]", "here").topology;
  run_ranks(2, [&](World& world) {
    EXPECT_FALSE(world.membership().topology);
    EXPECT_THAT(message_of<AgreementError>([&] { world.agree_on(world.rank() == 0 ? network : slower); }),
                HasSubstr("the workers differ in their network: rank 1 has"));
    world.agree_on(network);
    ASSERT_TRUE(world.membership().topology);
    EXPECT_EQ(world.membership().topology->workers(), 2);
  });
}

TEST(WorldTest, AWorkerThatFailsIsNotWaitedForWhileConnecting) {
  const auto start = std::chrono::steady_clock::now();
  run_ranks(3, [&](World& world) {
    if (world.rank() == 1) {
      world.report_failure("the disk is full");
    } else {
      EXPECT_THAT(message_of<PeerError>([&] {
                    world.channel({0, 1, 2}, "test");
                  }),
                  HasSubstr("connecting with ranks 0, 1, 2: rank 1 failed: the disk is full"));
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "the timeout is 30 s";
}

TEST(WorldTest, ALossCutsTheChannelsThatAreSharedWithTheLostOne) {
  run_ranks(3, [&](World& world) {
    if (world.rank() == 0) {
      const Channel kept = world.channel({0, 1}, "test");
      const Channel shared = world.channel({0, 2}, "test");
      world.barrier("connected");
      at::Tensor tensor = at::ones({3});
      std::vector<at::Tensor> tensors = {tensor};
      const Work work = shared->recv(tensors, 1, 0);
      EXPECT_ANY_THROW(work->wait()) << "nobody sends";
      EXPECT_THAT(world.explain("receiving", {0, 2}, "closed").what(), HasSubstr("rank 2 failed: the disk is full"));
      kept->allreduce(tensors)->wait();
      EXPECT_EQ(tensor.sum().item<float>(), 6);
    } else if (world.rank() == 1) {
      const Channel kept = world.channel({0, 1}, "test");
      world.barrier("connected");
      std::vector<at::Tensor> tensors = {at::ones({3})};
      kept->allreduce(tensors)->wait();
    } else {
      const Channel shared = world.channel({0, 2}, "test");
      world.barrier("connected");
      world.report_failure("the disk is full");
      // Until rank 0 has seen its own end cut: the connection is not closed from here before.
    }
  });
}

TEST(WorldTest, ListenersHearOfALoss) {
  run_ranks(2, [&](World& world) {
    std::promise<std::string> heard;
    const LossSubscription subscription = world.on_loss([&](const Loss& loss) { heard.set_value(loss.text()); });
    if (world.rank() == 1) world.report_failure("the disk is full");
    EXPECT_EQ(heard.get_future().get(), "rank 1 failed: the disk is full");
  });
}

TEST(WorldTest, WhatAListenerThrowsIsThrownByTheNextCall) {
  run_ranks(2, [&](World& world) {
    std::promise<void> heard;
    const LossSubscription first = world.on_loss([](const Loss&) { throw Error("no room for the news"); });
    const LossSubscription second = world.on_loss([&](const Loss&) { heard.set_value(); });
    if (world.rank() == 1) world.report_failure("the disk is full");
    heard.get_future().wait();
    EXPECT_EQ(message_of<Error>([&] { world.barrier("after the loss"); }), "no room for the news");
    EXPECT_NE(message_of<Error>([&] { world.channel({world.rank()}, "alone"); }), "no room for the news") << "once";
  });
}

TEST(WorldTest, MembersKnowWhoServesTheStore) {
  const ServedStore served = serve_store(0, std::chrono::seconds(10));
  const World world(served.store, {.store_place = StorePlace{"127.0.0.1", served.port}});
  EXPECT_EQ(world.membership().store_server(), 0);
  EXPECT_EQ(world.address(), "127.0.0.1");
  const World elsewhere(testing::hash_store(), {});
  EXPECT_EQ(elsewhere.membership().store_server(), std::nullopt);
}

}  // namespace
}  // namespace dssync
