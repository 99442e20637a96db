// Which examples a worker trains on, and when: every epoch deals all examples anew, and no two workers get the same.
// A function of its arguments alone: all workers agree without talking, and a resumed run goes on anywhere.
// Not thread-safe: it remembers the order of the last epoch.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace dssync {

class ShardedBatches {
 public:
  // Throws InputError unless there is at least one batch for every worker.
  ShardedBatches(std::int64_t examples, int batch_size, int rank, int workers, std::uint64_t seed);

  // How many batches every worker has in an epoch; what does not fill a batch for everyone is left out.
  std::int64_t per_epoch() const { return per_epoch_; }

  // The indices (int64) of this worker's batch. The batches of all workers with the same index are neighbours in the
  // epoch's order, so that fewer workers with larger batches see the same examples in the same iteration.
  // REQUIRES: 0 <= index < per_epoch().
  at::Tensor batch(std::int64_t epoch, std::int64_t index);

 private:
  void deal(std::int64_t epoch);

  std::int64_t examples_;
  std::int64_t batch_size_;
  std::int64_t rank_;
  std::int64_t workers_;
  std::uint64_t seed_;
  std::int64_t per_epoch_;
  std::int64_t dealt_epoch_ = -1;
  at::Tensor order_;
};

}  // namespace dssync
