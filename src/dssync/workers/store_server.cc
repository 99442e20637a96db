#include "dssync/workers/store_server.h"

#include <exception>
#include <vector>

#include <fmt/format.h>

#include "dssync/comm/membership.h"
#include "dssync/comm/rendezvous.h"

namespace dssync {
namespace {

std::string departure_key(int rank) { return fmt::format("departed/{}", rank); }

}  // namespace

StoreServer::StoreServer(std::uint16_t port, const RunId& run, int size)
    : served_(serve_store(port, std::chrono::seconds(10))), run_(store_of(served_.store, run, 0)) {
  announce_run(*served_.store, run, size);
}

void StoreServer::publish_loss(int rank, const std::string& description) noexcept {
  try {
    dssync::publish_loss(run_, rank, description);
  } catch (const std::exception&) {
    // The workers find out by themselves, later.
  }
}

std::vector<Loss> StoreServer::new_losses() noexcept {
  try {
    return losses_.read(*run_);
  } catch (const std::exception&) {
    return {};
  }
}

void StoreServer::await_departures(const Assignment& assignment, std::chrono::milliseconds patience) noexcept {
  try {
    std::vector<std::string> keys;
    for (int rank = 0; rank < assignment.size; ++rank) {
      if (rank != assignment.rank) keys.push_back(departure_key(rank));
    }
    if (!keys.empty()) run_->wait(keys, patience);
  } catch (const std::exception&) {
    // Somebody is gone without a word.
  }
}

void depart(const World& world) noexcept {
  try {
    world.store()->set(departure_key(world.rank()), std::vector<std::uint8_t>{1});
  } catch (const std::exception&) {
    // The store is gone: nobody waits.
  }
}

}  // namespace dssync
