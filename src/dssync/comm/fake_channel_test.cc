#include "dssync/comm/fake_channel.h"

#include <stdexcept>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "dssync/comm/testing.h"

namespace dssync::testing {
namespace {

Work all_reduce(const Channel& channel, const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  return channel->allreduce(tensors);
}

TEST(FakeChannelTest, AddsUpAndHandsOutAsGlooDoes) {
  const FakeGroup group(3);
  std::vector<at::Tensor> sums;
  std::vector<Work> works;
  for (int member = 0; member < 3; ++member) {
    sums.push_back(at::full({4}, member + 1.0));
    works.push_back(all_reduce(group.channel(member), sums.back()));
  }
  for (const Work& work : works) work->wait();
  for (const at::Tensor& sum : sums) EXPECT_TRUE(at::equal(sum, at::full({4}, 6.0)));
  for (int member = 0; member < 3; ++member) {
    std::vector<at::Tensor> tensors = {sums[static_cast<std::size_t>(member)].mul_(member)};
    works.push_back(group.channel(member)->broadcast(tensors, {1, 0}));
  }
  for (const at::Tensor& value : sums) EXPECT_TRUE(at::equal(value, at::full({4}, 6.0)));
}

TEST(FakeChannelTest, SendsSliceNumberIToMemberI) {
  const FakeGroup group(2);
  std::vector<at::Tensor> inputs = {at::arange(0, 3), at::arange(10, 14)};
  std::vector<at::Tensor> outputs = {at::zeros({3}, at::kLong), at::zeros({4}, at::kLong)};
  std::vector<std::vector<std::int64_t>> sent = {{1, 2}, {2, 2}};
  std::vector<std::vector<std::int64_t>> received = {{1, 2}, {2, 2}};
  for (std::size_t member = 0; member < 2; ++member) {
    group.channel(static_cast<int>(member))
        ->alltoall_base(outputs[member], inputs[member], received[member], sent[member]);
  }
  EXPECT_TRUE(at::equal(outputs[0], at::tensor({0, 10, 11}, at::kLong)));
  EXPECT_TRUE(at::equal(outputs[1], at::tensor({1, 2, 12, 13}, at::kLong)));
}

TEST(FakeChannelTest, AHeldOperationEndsWhenItIsReleased) {
  FakeGroup group(2);
  group.hold(0, 0);
  const Work held = all_reduce(group.channel(0), at::ones({1}));
  const Work free = all_reduce(group.channel(1), at::ones({1}));
  EXPECT_FALSE(held->isCompleted());
  EXPECT_TRUE(free->isCompleted());
  group.release(0, 0);
  EXPECT_TRUE(held->isCompleted());
  EXPECT_TRUE(held->isSuccess());
}

TEST(FakeChannelTest, FailuresAndCutsEndOperationsWithTheirError) {
  FakeGroup group(2);
  group.fail(0, 1, std::make_exception_ptr(std::runtime_error("scripted")));
  group.refuse(1, 0, std::make_exception_ptr(std::bad_alloc()));
  EXPECT_THROW(all_reduce(group.channel(1), at::ones({1})), std::bad_alloc);
  const Work done = all_reduce(group.channel(1), at::ones({1}));
  all_reduce(group.channel(0), at::ones({1}));
  EXPECT_TRUE(done->isSuccess());
  const Work failed = all_reduce(group.channel(0), at::ones({1}));
  const Work alone = all_reduce(group.channel(1), at::ones({1}));
  EXPECT_EQ(message_of<std::runtime_error>([&] { failed->wait(); }), "scripted");
  EXPECT_FALSE(alone->isCompleted());
  cut(*group.channel(0));
  EXPECT_TRUE(group.is_cut());
  EXPECT_EQ(message_of<std::runtime_error>([&] { alone->wait(); }), "the connection was cut");
  EXPECT_EQ(message_of<std::runtime_error>([&] { all_reduce(group.channel(1), at::ones({1}))->wait(); }),
            "the connection was cut");
  EXPECT_EQ(group.started(0).size(), 2U);
}

TEST(FakeChannelTest, OperationsThatDoNotMatchFail) {
  const FakeGroup group(2);
  const Work sum = all_reduce(group.channel(0), at::ones({1}));
  std::vector<at::Tensor> tensors = {at::ones({1})};
  group.channel(1)->broadcast(tensors);
  EXPECT_EQ(message_of<std::runtime_error>([&] { sum->wait(); }), "members started different operations");
}

}  // namespace
}  // namespace dssync::testing
