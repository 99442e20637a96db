// The order of an epoch is a shuffle whose random numbers depend on the seed and the epoch.
#include "dssync/training/data/sharded_batches.h"

#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/data/random.h"

namespace dssync {
namespace {

// Apart from the streams that draw synthetic images.
constexpr std::uint64_t kFirstEpochStream = std::uint64_t{1} << 32;

}  // namespace

ShardedBatches::ShardedBatches(std::int64_t examples, int batch_size, int rank, int workers, std::uint64_t seed)
    : examples_(examples), batch_size_(batch_size), rank_(rank), workers_(workers), seed_(seed), per_epoch_(0) {
  if (batch_size < 1) throw InputError(fmt::format("batch size {}: expected at least 1", batch_size));
  per_epoch_ = examples_ / (batch_size_ * workers_);
  if (per_epoch_ < 1) {
    throw InputError(fmt::format("{} training examples are not enough for {} workers with batches of {}", examples,
                                 workers, batch_size));
  }
}

at::Tensor ShardedBatches::batch(std::int64_t epoch, std::int64_t index) {
  if (epoch != dealt_epoch_) deal(epoch);
  const std::int64_t first = (index * workers_ + rank_) * batch_size_;
  return order_.slice(0, first, first + batch_size_);
}

void ShardedBatches::deal(std::int64_t epoch) {
  Random random(seed_, kFirstEpochStream + static_cast<std::uint64_t>(epoch));
  order_ = at::arange(examples_, at::kLong);
  auto* order = order_.data_ptr<std::int64_t>();
  for (std::int64_t left = examples_; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(static_cast<std::uint64_t>(left))]);
  }
  dealt_epoch_ = epoch;
}

}  // namespace dssync
