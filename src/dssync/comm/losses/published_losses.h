// Losses in the store, where launchers and workers publish them for all workers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/comm/losses/loss_record.h"

namespace dssync {

// Tells the workers of a run that one of them is lost, and how: for launchers, which see their processes die. `store`
// is the run's (store_of).
void publish_loss(const Store& store, Rank rank, const std::string& description);

void publish(c10d::Store& store, const Loss& loss);

// Reads them as they come. Not thread-safe.
class PublishedLosses {
 public:
  // Those that were not read yet. Asks the store once where nothing is new. Never waits: a publisher may have ended
  // between the count and the text.
  std::vector<Loss> read(c10d::Store& store);

 private:
  std::int64_t counted_ = 0;
  std::set<std::int64_t> unread_;  // counted, but their text was not there yet
};

}  // namespace dssync
