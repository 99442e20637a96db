// Where a store is reached by TCP, and what that says of this process. Plain values; asks the kernel, never the network.
#pragma once

#include <cstdint>
#include <string>

namespace dssync {

struct StorePlace {
  std::string host;
  std::uint16_t port = 0;

  std::string text() const;  // "node1:29500"
};

// The local address from which the store is reached: of the interface that should carry this worker's traffic. (The
// name of a Debian machine resolves to 127.0.1.1, which no other machine reaches.) 127.0.0.1 where the kernel knows no
// way to it.
std::string address_towards(const StorePlace& place);

// Whether this process serves the store: it listens on that port, and the host is this one.
bool is_served_here(const StorePlace& place);

}  // namespace dssync
