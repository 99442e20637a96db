// Who gets which examples.
#include "dssync/training/data/sharded_batches.h"

#include <algorithm>
#include <set>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

using Indices = std::vector<std::int64_t>;

Indices indices_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {whole.data_ptr<std::int64_t>(), whole.data_ptr<std::int64_t>() + whole.numel()};
}

Indices epoch_of(ShardedBatches& batches, std::int64_t epoch) {
  Indices all;
  for (std::int64_t index = 0; index < batches.per_epoch(); ++index) {
    const Indices batch = indices_of(batches.batch(epoch, index));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(ShardedBatchesTest, WorkersShareNothingAndLeaveOutOnlyTheRemainder) {
  for (const std::int64_t examples : {96, 97, 119}) {
    std::set<std::int64_t> seen;
    std::size_t dealt = 0;
    for (int rank = 0; rank < 3; ++rank) {
      ShardedBatches batches(examples, 8, rank, 3, 5);
      EXPECT_EQ(batches.per_epoch(), 4);  // 4 x 3 x 8 = 96
      const Indices own = epoch_of(batches, 2);
      dealt += own.size();
      seen.insert(own.begin(), own.end());
    }
    EXPECT_EQ(dealt, 96u);
    EXPECT_EQ(seen.size(), 96u);
    EXPECT_GE(*seen.begin(), 0);
    EXPECT_LT(*seen.rbegin(), examples);
  }
}

TEST(ShardedBatchesTest, EveryEpochAndSeedHasItsOwnOrder) {
  ShardedBatches batches(1'000, 10, 0, 1, 5);
  ShardedBatches other_seed(1'000, 10, 0, 1, 6);
  const Indices first = epoch_of(batches, 0);
  EXPECT_NE(first, epoch_of(batches, 1));
  EXPECT_NE(first, epoch_of(other_seed, 0));
  EXPECT_NE(epoch_of(batches, 1), epoch_of(other_seed, 0));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(ShardedBatchesTest, StartsAnywhere) {
  ShardedBatches whole(500, 7, 1, 4, 9);
  std::vector<Indices> expected;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t index = 0; index < whole.per_epoch(); ++index) {
      expected.push_back(indices_of(whole.batch(epoch, index)));
    }
  }
  ShardedBatches resumed(500, 7, 1, 4, 9);
  for (auto at = static_cast<std::int64_t>(expected.size()) - 1; at >= 0; --at) {
    EXPECT_EQ(indices_of(resumed.batch(at / resumed.per_epoch(), at % resumed.per_epoch())),
              expected[static_cast<std::size_t>(at)]);
  }
}

TEST(ShardedBatchesTest, AnIterationSeesTheSameExamplesWithAnyNumberOfWorkers) {
  ShardedBatches alone(400, 32, 0, 1, 3);
  Indices together;
  for (int rank = 0; rank < 4; ++rank) {
    const Indices part = indices_of(ShardedBatches(400, 8, rank, 4, 3).batch(1, 2));
    together.insert(together.end(), part.begin(), part.end());
  }
  EXPECT_EQ(indices_of(alone.batch(1, 2)), together);
}

// Each of 4 examples should come first in a quarter of the epochs: 250 of 1000, standard deviation 13.7.
TEST(ShardedBatchesTest, EveryExampleComesFirstEquallyOften) {
  ShardedBatches batches(4, 1, 0, 1, 1);
  std::vector<int> first(4);
  for (int epoch = 0; epoch < 1'000; ++epoch) {
    ++first[static_cast<std::size_t>(batches.batch(epoch, 0).item<std::int64_t>())];
  }
  EXPECT_THAT(first, ::testing::Each(::testing::AllOf(::testing::Gt(190), ::testing::Lt(310))));
}

TEST(ShardedBatchesTest, NeedsABatchForEveryWorker) {
  EXPECT_EQ(ShardedBatches(24, 8, 0, 3, 1).per_epoch(), 1);
  EXPECT_THROW(ShardedBatches(23, 8, 0, 3, 1), InputError);
  EXPECT_THROW(ShardedBatches(23, 0, 0, 3, 1), InputError);
}

}  // namespace
}  // namespace dssync
