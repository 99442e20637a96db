#include "dssync/live/interface_counter.h"

#include <cstdlib>
#include <fstream>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <netdb.h>
#include <string_view>
#include <sys/socket.h>

#include <net/if.h>

namespace dssync {
namespace {

// Without the zone that an IPv6 address of a link ends with.
std::string text_of(const sockaddr& address) {
  const bool is_known = address.sa_family == AF_INET || address.sa_family == AF_INET6;
  const socklen_t size = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  char text[NI_MAXHOST] = "";
  if (!is_known || getnameinfo(&address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  const std::string_view whole = text;
  return std::string(whole.substr(0, whole.find('%')));
}

std::string interface_of(const std::string& address) {
  const char* variable = std::getenv("GLOO_SOCKET_IFNAME");
  const std::string wanted = variable == nullptr ? "" : variable;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(found, freeifaddrs);
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || entry->ifa_addr == nullptr) continue;
    if (wanted.empty() ? text_of(*entry->ifa_addr) == address : wanted == entry->ifa_name) return entry->ifa_name;
  }
  return "";
}

}  // namespace

InterfaceCounter::InterfaceCounter(const std::string& address) : interface_(interface_of(address)) {}

std::optional<InterfaceBytes> InterfaceCounter::read() const {
  if (interface_.empty()) return std::nullopt;
  std::ifstream file("/proc/self/net/dev");
  const auto counters = interface_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
  const auto found = counters.find(interface_);
  if (found == counters.end()) return std::nullopt;
  return found->second;
}

}  // namespace dssync
