#include "dssync/testbed/shaping.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr std::uint64_t kFrame = kMtu + 14;       // with its Ethernet header
constexpr double kLateness = 500e-6;              // of the kernel's timers, which the bucket makes up for
constexpr std::uint64_t kLeastQueue = 2'000'000;  // bytes
constexpr double kQueueSeconds = 0.05;
constexpr double kWindowSeconds = 4e-3;
constexpr double kLeastWindow = 4 * kMtu;
constexpr double kLeastBuffer = 1e6;  // bytes

std::uint64_t bytes_in(Bandwidth rate, double seconds) {
  return static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * seconds));
}

}  // namespace

Bucket bucket_for(Bandwidth rate) {
  return {.bits_per_second = static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * 8)),
          .burst = kFrame + bytes_in(rate, kLateness),
          .limit = std::max(kLeastQueue, bytes_in(rate, kQueueSeconds))};
}

std::string tbf_text(Bandwidth rate) {
  const Bucket bucket = bucket_for(rate);
  return fmt::format("tbf rate {}bit burst {}b limit {}b", bucket.bits_per_second, bucket.burst, bucket.limit);
}

int tcp_window(Bandwidth slowest) {
  return static_cast<int>(std::max(kLeastWindow, slowest.bytes_per_second * kWindowSeconds));
}

std::vector<std::pair<std::string, std::string>> tcp_settings(Bandwidth nic) {
  // Buffers are larger than the window on the network, so that a worker that is not scheduled for a while holds up
  // nobody.
  const auto buffer = static_cast<std::uint64_t>(std::max(kLeastBuffer, 4 * nic.bytes_per_second * kWindowSeconds));
  return {
      {"ipv4/tcp_congestion_control", "reno"},
      {"ipv4/tcp_rmem", fmt::format("4096 {0} {0}", buffer)},
      {"ipv4/tcp_wmem", fmt::format("4096 {0} {0}", buffer)},
      {"ipv4/tcp_no_metrics_save", "1"},
      {"ipv4/tcp_slow_start_after_idle", "0"},
  };
}

}  // namespace dssync
