// Quantities with their units: written by people ("50Mbps", "8MB", "20ms"), printed for people. Prefixes are decimal
// (k = 1000); the binary ones (KiB, MiB, GiB) are read too. A number without a unit is an InputError, never a guess.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace dssync {

using Seconds = std::chrono::duration<double>;

// A data rate. Within [kMinBandwidth, kMaxBandwidth] when it comes from parse_bandwidth.
struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};

// What parsing accepts, so that sums and quotients of parsed quantities stay finite.
inline constexpr Bandwidth kMinBandwidth{0.125};    // 1 bit/s
inline constexpr Bandwidth kMaxBandwidth{1.25e17};  // 1000 Pbit/s
inline constexpr Seconds kMaxDuration{1e9};

// "50Mbps", "1.5 Gbps", "200Mbit/s", "25MB/s". REQUIRES of the text: a positive finite number and a unit.
Bandwidth parse_bandwidth(std::string_view text);

// "8MB", "512 KiB", "1B". A positive whole number of bytes, at most 2^53.
std::int64_t parse_bytes(std::string_view text);

// "20ms", "50us", "0s", "2min". Zero or more, at most kMaxDuration.
Seconds parse_duration(std::string_view text);

// Shortest of three significant digits with a fitting prefix: "50 Mbit/s", "1.25 Gbit/s".
std::string format_bandwidth(Bandwidth value);
// "8 MB", "1.6 MB", "12 B".
std::string format_bytes(double bytes);
// "340 ms", "1.28 s", "50 us".
std::string format_duration(Seconds value);

}  // namespace dssync
