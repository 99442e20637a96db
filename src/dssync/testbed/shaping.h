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
  std::uint64_t burst = 0;  // bytes that an idle link may send at once
  std::uint64_t limit = 0;  // bytes that wait at most
};

// REQUIRES: rate within [kMinLinkRate, kMaxLinkRate].
Bucket bucket_for(Bandwidth rate);

// "tbf rate 50000000bit burst 18100b limit 2000000b", as tc reads it.
std::string tbf_text(Bandwidth rate);

// The bytes that one flow of TCP may have under way on a path whose slowest link has this rate: enough to fill it, few
// enough that the queues of links that many flows share stay short and do not overflow.
int tcp_window(Bandwidth slowest);

// Settings of a network namespace, as files below /proc/sys/net and their text. `nic` is the rate of its cable.
std::vector<std::pair<std::string, std::string>> tcp_settings(Bandwidth nic);

}  // namespace dssync
