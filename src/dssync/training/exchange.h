// Small things that workers tell each other through the store, outside of the training itself. Collective: every worker
// makes the same calls in the same order. Not thread-safe. All throw PeerError where a worker is lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dssync/comm/world.h"

namespace dssync {

class Exchange {
 public:
  // The world must outlive it. A world may have several, one after another.
  explicit Exchange(World& world);

  // Rank 0 gets what all workers gave, by rank; the others get nothing.
  std::vector<std::string> gather(const std::string& what, const std::string& mine);

  // All get what rank 0 gave.
  std::string broadcast(const std::string& what, const std::string& value);

  // Returns when all workers are there.
  void meet(const std::string& what);

 private:
  std::string next_name(const std::string& what);
  template <typename Work>
  auto explained(const std::string& what, Work work);

  World& world_;
  std::int64_t number_ = 0;  // of this exchange in its world
  std::int64_t calls_ = 0;
};

}  // namespace dssync
