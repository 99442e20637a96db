#include "dssync/testbed/shaping.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr std::uint64_t kFrame = kMtu + 14;       // with its Ethernet header
constexpr double kBurstSeconds = 250e-6;          // what a late timer may cost
constexpr std::uint64_t kLeastQueue = 2'000'000;  // bytes
constexpr double kQueueSeconds = 0.05;
constexpr double kWindowSeconds = 5e-3;
constexpr double kLeastWindow = 128e3;
constexpr double kMostWindow = 4e6;

std::uint64_t bytes_in(Bandwidth rate, double seconds) {
  return static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * seconds));
}

}  // namespace

Bucket bucket_for(Bandwidth rate) {
  return {.bits_per_second = static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * 8)),
          .burst = std::max(kFrame, bytes_in(rate, kBurstSeconds)),
          .limit = std::max(kLeastQueue, bytes_in(rate, kQueueSeconds))};
}

std::string tbf_text(Bandwidth rate) {
  const Bucket bucket = bucket_for(rate);
  return fmt::format("tbf rate {}bit burst {}b limit {}b", bucket.bits_per_second, bucket.burst, bucket.limit);
}

std::vector<std::pair<std::string, std::string>> tcp_settings(Bandwidth nic) {
  const auto window =
      static_cast<std::uint64_t>(std::clamp(nic.bytes_per_second * kWindowSeconds, kLeastWindow, kMostWindow));
  return {
      {"ipv4/tcp_congestion_control", "reno"},
      {"ipv4/tcp_rmem", fmt::format("4096 {} {}", window, window)},
      {"ipv4/tcp_wmem", fmt::format("4096 {} {}", window, 4 * window)},
      {"ipv4/tcp_no_metrics_save", "1"},
      {"ipv4/tcp_slow_start_after_idle", "0"},
  };
}

}  // namespace dssync
