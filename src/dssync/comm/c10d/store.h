// c10d's store as workers use it: serving one, reaching one, text in it. Starts threads where it serves.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "dssync/comm/c10d/c10d.h"

namespace dssync {

struct ServedStore {
  Store store;
  std::uint16_t port = 0;
};

// Serves a store to all who reach this machine, on this port or, where it is 0, on a free one. It ends with the last
// reference to it. Throws Error that names the port where it is taken.
ServedStore serve_store(std::uint16_t port, std::chrono::milliseconds timeout);

// Throws Error that names host and port where there is none within the timeout.
Store reach_store(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout);

void put_text(c10d::Store& store, const std::string& key, const std::string& text);

// Waits for the key.
std::string get_text(c10d::Store& store, const std::string& key);

}  // namespace dssync
