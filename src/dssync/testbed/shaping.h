// How a link of a given capacity is made of a token bucket, and how hosts' TCP is set to fit. The figures were chosen
// by measurement: docs/testbed.md. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dssync/base/units.h"

namespace dssync {

// Of every interface. Large frames: a frame costs the same CPU time whatever its size, and the CPU is shared by all
// hosts.
inline constexpr int kMtu = 9000;

// What tc can shape; a slower or faster link is refused.
inline constexpr Bandwidth kMinLinkRate{8e3 / 8};
inline constexpr Bandwidth kMaxLinkRate{100e9 / 8};

// A token bucket.
struct Bucket {
  std::uint64_t bits_per_second = 0;
  std::uint64_t burst = 0;  // bytes that an idle link may send at once, besides the frame that uses up the last of them
  std::uint64_t limit = 0;  // bytes that wait at most
};

// REQUIRES: rate within [kMinLinkRate, kMaxLinkRate].
Bucket bucket_for(Bandwidth rate);

// Commands for `tc -batch` that make an interface send at this rate, after `latency`. Acknowledgements of TCP go first:
// they would wait behind the data of the other direction far longer than in a fast network.
std::string shaping_lines(const std::string& device, Bandwidth rate, Seconds latency);
// Those that give it another rate.
std::string reshaping_lines(const std::string& device, Bandwidth rate);

// A command that shows what shown_rate reads.
std::string rate_query(const std::string& device);
// The rates in the answers to one or several queries, in their order, as tc rounds them.
std::vector<Bandwidth> shown_rates(const std::string& answers);

// How many frames a host may pass on as one, which saves CPU time: no more than the link takes two milliseconds for.
int frames_at_once(Bandwidth nic);

// The bytes that one flow of TCP may have under way from a host with this NIC: enough to fill its links while the
// sender waits for the CPU, few enough that the queues of links that many flows share do not overflow.
int send_buffer(Bandwidth nic);

// The options of `ip route` for a path from such a host: a shortest timer for repeating that is longer than the queue
// of its slowest link.
std::string route_settings(Bandwidth nic, Bandwidth slowest);

// Settings of a network namespace, as files below /proc/sys/net and their text. `nic` is the rate of its cable.
std::vector<std::pair<std::string, std::string>> tcp_settings(Bandwidth nic);

}  // namespace dssync
