#include "dssync/comm/c10d/cuttable_group.h"

#include <future>
#include <stdexcept>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "dssync/comm/fake_channel.h"
#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using testing::FakeGroup;
using testing::message_of;

constexpr std::chrono::milliseconds kPatience{60'000};

Work sum(const Channel& channel, const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  return channel->allreduce(tensors);
}

TEST(CuttableGroupTest, OperationsEndAsTheGroupBelowEndsThem) {
  FakeGroup group(2);
  group.hold(0, 0);
  group.fail(0, 1, std::make_exception_ptr(std::runtime_error("a broken cable")));
  const Channel channel = make_cuttable(group.channel(0));
  EXPECT_EQ(channel->getSize(), 2);
  const at::Tensor tensor = at::ones({1});
  const Work work = sum(channel, tensor);
  sum(group.channel(1), at::ones({1}));
  EXPECT_FALSE(work->isCompleted());
  bool is_told = false;
  work->getFuture()->addCallback([&](auto&) { is_told = true; });
  group.release(0, 0);
  work->wait();
  EXPECT_TRUE(is_told);
  EXPECT_EQ(tensor.item<float>(), 2);
  EXPECT_EQ(message_of<std::runtime_error>([&] { sum(channel, tensor)->wait(); }), "a broken cable");
}

TEST(CuttableGroupTest, ACutEndsWhatTheGroupBelowHoldsOnTo) {
  FakeGroup group(2);
  group.stick(0, 0);
  const Channel channel = make_cuttable(group.channel(0));
  const Work work = sum(channel, at::ones({1}));
  std::future<std::string> waiting =
      std::async(std::launch::async, [&] { return message_of<std::runtime_error>([&] { work->wait(); }); });
  cut(*channel);
  EXPECT_EQ(waiting.get(), "the connection was cut");
  EXPECT_TRUE(group.is_cut());
  EXPECT_TRUE(work->getFuture()->hasError());
  EXPECT_EQ(message_of<std::runtime_error>([&] { sum(channel, at::ones({1})); }), "the connection was cut");
  group.release(0, 0);  // in the end: nobody is told twice
}

// The memory of an operation belongs to c10d until it lets go.
TEST(CuttableGroupTest, WhatTheGroupBelowHoldsOnToOutlivesTheChannel) {
  FakeGroup group(2);
  group.stick(0, 0);
  at::Tensor tensor = at::ones({1});
  {
    const Channel channel = make_cuttable(group.channel(0));
    const Work work = sum(channel, tensor);
    cut(*channel);
    EXPECT_ANY_THROW(work->wait());
  }
  EXPECT_GT(tensor.use_count(), 1u);
  group.release(0, 0);
}

#if TORCH_VERSION_MAJOR < 2  // the others have no Gloo for C++
// Two members of one Gloo group.
class GlooPairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto make = [this](int index) {
      return make_cuttable(gloo_groups("127.0.0.1", kPatience)(store_, index, 2));
    };
    std::future<Channel> other = std::async(std::launch::async, make, 1);
    channel_ = make(0);
    other_ = other.get();
  }

  // What whoever waits for this work hears when the channel is cut.
  std::string cut_while_waiting(const Work& work) {
    std::future<std::string> waiting =
        std::async(std::launch::async, [&] { return message_of<std::runtime_error>([&] { work->wait(); }); });
    cut(*channel_);
    return waiting.get();
  }

  const Store store_ = testing::hash_store();
  Channel channel_;
  Channel other_;
  std::vector<at::Tensor> one_ = {at::ones({1})};
};

TEST_F(GlooPairTest, MessagesArrive) {
  std::vector<at::Tensor> received = {at::zeros({1})};
  const Work receiving = other_->recvAnysource(received, 7);
  channel_->send(one_, 1, 7)->wait();
  receiving->wait();
  EXPECT_EQ(receiving->sourceRank(), 0);
  EXPECT_EQ(received[0].item<float>(), 1);
}

TEST_F(GlooPairTest, ACutEndsTheWaitForAMessage) {
  EXPECT_NE(cut_while_waiting(channel_->recv(one_, 1, 7)), "no exception");
  EXPECT_EQ(message_of<std::runtime_error>([&] { channel_->send(one_, 1, 7); }), "the connection was cut");
}

TEST_F(GlooPairTest, ACutEndsTheWaitForAnyonesMessage) {
  EXPECT_NE(cut_while_waiting(channel_->recvAnysource(one_, 7)), "no exception");
}

TEST_F(GlooPairTest, ACutEndsTheWaitForAnOperation) {
  EXPECT_NE(cut_while_waiting(sum(channel_, one_[0])), "no exception");
}

TEST_F(GlooPairTest, AnAbortedWaitIsNoFailure) {
  const Work receiving = channel_->recvAnysource(one_, 7);
  receiving->abort();
  EXPECT_FALSE(receiving->wait(kPatience));
}
#endif

}  // namespace
}  // namespace dssync
