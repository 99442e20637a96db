#include "dssync/workers/store_server.h"

#include <exception>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dssync/base/error.h"

namespace dssync {
namespace {

std::string departure_key(int rank) { return fmt::format("dssync/departed/{}", rank); }

}  // namespace

StoreServer::StoreServer(std::uint16_t port) : served_(serve_store(port, std::chrono::seconds(10))) {}

void StoreServer::publish_loss(int rank, const std::string& description) noexcept {
  try {
    dssync::publish_loss(served_.store, rank, description);
  } catch (const std::exception&) {
    // The workers find out by themselves, later.
  }
}

void StoreServer::await_departures(const Assignment& assignment, std::chrono::milliseconds patience) noexcept {
  try {
    std::vector<std::string> keys;
    for (int rank = 0; rank < assignment.size; ++rank) {
      if (rank != assignment.rank) keys.push_back(departure_key(rank));
    }
    Store store = served_.store;
    if (!assignment.store_prefix.empty())
      store = c10::make_intrusive<c10d::PrefixStore>(assignment.store_prefix, store);
    if (!keys.empty()) store->wait(keys, patience);
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
