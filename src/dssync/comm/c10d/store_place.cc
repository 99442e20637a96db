#include "dssync/comm/c10d/store_place.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

namespace dssync {
namespace {

struct Route {
  std::string from;
  std::string to;
};

std::string address_text(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::optional<sockaddr_storage> local_end(int handle) {
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (getsockname(handle, reinterpret_cast<sockaddr*>(&local), &length) != 0) return std::nullopt;
  return local;
}

// To the first address of the host that there is a way to. Connecting a datagram socket sends nothing.
std::optional<Route> route_to(const StorePlace& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const int handle = socket(entry->ai_family, entry->ai_socktype, entry->ai_protocol);
    if (handle < 0) continue;
    std::optional<sockaddr_storage> local;
    if (connect(handle, entry->ai_addr, entry->ai_addrlen) == 0) local = local_end(handle);
    close(handle);
    if (!local) continue;
    Route route{address_text(reinterpret_cast<const sockaddr*>(&*local), sizeof *local),
                address_text(entry->ai_addr, entry->ai_addrlen)};
    if (!route.from.empty()) return route;
  }
  return std::nullopt;
}

bool is_this_machine(const Route& route) { return route.from == route.to || route.to.starts_with("127."); }

// Whether the socket waits for connections to this port.
bool listens_on(int handle, std::uint16_t port) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  if (getsockopt(handle, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0) return false;
  const std::optional<sockaddr_storage> local = local_end(handle);
  if (!local) return false;
  if (local->ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(*local).sin_port) == port;
  return local->ss_family == AF_INET6 && ntohs(reinterpret_cast<const sockaddr_in6&>(*local).sin6_port) == port;
}

}  // namespace

std::string StorePlace::text() const { return fmt::format("{}:{}", host, port); }

std::string address_towards(const StorePlace& place) {
  const std::optional<Route> route = route_to(place);
  return route ? route->from : "127.0.0.1";
}

bool is_served_here(const StorePlace& place) {
  const std::optional<Route> route = route_to(place);
  if (!route || !is_this_machine(*route)) return false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    if (listens_on(std::atoi(entry.path().filename().c_str()), place.port)) return true;
  }
  return false;
}

}  // namespace dssync
