// The c10d store at which workers meet, as their launcher or rank 0 serves it. Starts threads, so a launcher makes it
// after the workers were forked. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "dssync/comm/c10d/store.h"
#include "dssync/comm/world.h"
#include "dssync/launch/assignment.h"

namespace dssync {

class StoreServer {
 public:
  // Serves this run of `size` workers. Throws Error that names the port where it is taken. 0: any free one.
  StoreServer(std::uint16_t port, const RunId& run, int size);

  std::uint16_t port() const { return served_.port; }

  // Tells the workers that one of them is lost. Never throws.
  void publish_loss(int rank, const std::string& description) noexcept;

  // What workers have told of lost ones since the last call. Never throws.
  std::vector<Loss> new_losses() noexcept;

  // Returns when all other workers of `assignment` have left, or at the latest after `patience`. A store that ended
  // before would keep them from learning how the run ended.
  void await_departures(const Assignment& assignment, std::chrono::milliseconds patience) noexcept;

 private:
  ServedStore served_;
  Store run_;  // its part of the store
  PublishedLosses losses_;
};

// Tells rank 0 that this worker does not need the store any more. Never throws.
void depart(const World& world) noexcept;

}  // namespace dssync
