// Waiting in the store for something that needs every worker. Thread-safe: a plain value and a function.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "dssync/comm/c10d.h"
#include "dssync/topology/topology.h"

namespace dssync {

// Who waits, where, and for how long.
struct Waiting {
  Store store;  // the run's
  Rank rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{60'000};
  std::function<std::string()> losses;  // what is known of lost workers
};

// Returns when `key` is there. Throws PeerError "rank 2: DOING: ..." where it does not come: a loss is the cause, or
// the ranks that have not set "ARRIVALS/RANK" within the timeout. Asks again and again instead of blocking in the
// store, so that a loss is heard of at once.
void await(const Waiting& waiting, const std::string& key, const std::string& doing, const std::string& arrivals);

}  // namespace dssync
