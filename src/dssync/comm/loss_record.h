// What one worker knows of lost workers. Thread-safe: the watch writes it, whoever waits for others reads it.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

struct Loss {
  static constexpr Rank kLauncher = -1;  // as told_by
  static constexpr Rank kStore = -2;     // as rank: the store is lost, not a worker

  Rank rank = 0;
  Rank told_by = kLauncher;
  std::string description;  // "was killed by signal 9 (Killed)", "failed: the disk is full", "gives no sign of life"

  std::string text() const;  // "rank 3 gives no sign of life"
};

class LossRecord {
 public:
  explicit LossRecord(Rank self) : self_(self) {}

  // The first loss of a rank counts; false: there is one already.
  bool add(const Loss& loss);

  bool has(Rank rank) const;
  // Whether others have taken this worker for lost.
  bool is_given_up() const;
  // Those that came after the first `known`, in their order.
  std::vector<Loss> after(std::size_t known) const;
  // "rank 3 was killed by signal 9; rank 4 failed: ..."; empty where all are there. What this worker has told of itself
  // is left out. Where others have given it up, that comes first.
  std::string text() const;

 private:
  const Rank self_;
  mutable std::mutex mutex_;
  std::vector<Loss> losses_;
};

}  // namespace dssync
