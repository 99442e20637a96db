// What network interfaces have carried so far, as the kernel tells in /proc/net/dev. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace dssync {

struct InterfaceBytes {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  bool operator==(const InterfaceBytes&) const = default;
};

// By interface. Lines that are not of an interface are left out.
std::map<std::string, InterfaceBytes> interface_bytes(const std::string& proc_net_dev);

}  // namespace dssync
