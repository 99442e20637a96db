#include "dssync/testbed/shaping.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "dssync/testbed/error.h"

namespace dssync {
namespace {

constexpr std::uint64_t kFrame = kMtu + 14;       // with its Ethernet header
constexpr double kLateness = 500e-6;              // of the kernel's timers, which the bucket makes up for
constexpr std::uint64_t kLeastBurst = 1'600;      // bytes
constexpr std::uint64_t kLeastQueue = 4'000'000;  // bytes
constexpr double kQueueSeconds = 0.3;
constexpr double kPassSeconds = 2e-3;
constexpr double kSendSeconds = 10e-3;
constexpr double kLeastSend = 64e3;  // bytes
constexpr double kMostSend = 1e6;
constexpr int kReceiveBuffer = 8'000'000;
constexpr double kFlows = 16;        // that are to share a link without repeating for nothing
constexpr double kUsualTimer = 0.2;  // the kernel's
constexpr double kLongestTimer = 4;

std::uint64_t bytes_in(Bandwidth rate, double seconds) {
  return static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * seconds));
}

// The whole link is class 1:1. Of its two parts 1:3 goes first and 1:2 has all the rest; what is promised to each is
// next to nothing, so that what they get they borrow from the whole.
std::string class_lines(const std::string& verb, const std::string& device, Bandwidth rate) {
  const Bucket bucket = bucket_for(rate);
  const std::uint64_t promised = std::max<std::uint64_t>(1000, bucket.bits_per_second / 100);
  constexpr std::uint64_t kQuantum = kFrame;
  std::string text =
      fmt::format("class {} dev {} parent 1: classid 1:1 htb rate {}bit burst {}b cburst {}b quantum {}\n", verb,
                  device, bucket.bits_per_second, bucket.burst, bucket.burst, kQuantum);
  for (const auto& [number, priority] : {std::pair(2, 1), std::pair(3, 0)}) {
    text += fmt::format(
        "class {} dev {} parent 1:1 classid 1:{} htb rate {}bit ceil {}bit burst {}b cburst {}b prio {} quantum {}\n",
        verb, device, number, promised, bucket.bits_per_second, kLeastBurst, bucket.burst, priority, kQuantum);
  }
  return text;
}

}  // namespace

Bucket bucket_for(Bandwidth rate) {
  return {.bits_per_second = static_cast<std::uint64_t>(std::llround(rate.bytes_per_second * 8)),
          .burst = std::max(kLeastBurst, bytes_in(rate, kLateness)),
          .limit = std::max(kLeastQueue, bytes_in(rate, kQueueSeconds))};
}

std::string shaping_lines(const std::string& device, Bandwidth rate, Seconds latency) {
  std::string text = fmt::format("qdisc replace dev {} root handle 1: htb default 2\n", device);
  text += class_lines("add", device, rate);
  const std::uint64_t limit = bucket_for(rate).limit;
  std::string queue = fmt::format("bfifo limit {}b", limit);
  if (latency.count() > 0) {
    // As many frames as would wait without latency, and those that are under way.
    const double bytes = static_cast<double>(limit) + rate.bytes_per_second * latency.count();
    queue = fmt::format("netem delay {:.3f}us limit {}", latency.count() * 1e6, 1000 + std::llround(bytes / 1000));
  }
  text += fmt::format("qdisc add dev {0} parent 1:2 handle 2: {1}\nqdisc add dev {0} parent 1:3 handle 3: {1}\n",
                      device, queue);
  // TCP (6), 40 bytes with IP's header, so without data; of the flags ACK alone.
  text += fmt::format(
      "filter add dev {} parent 1: protocol ip u32 match ip protocol 6 0xff match u16 40 0xffff at 2 match u8 0x10 "
      "0xff "
      "at 33 flowid 1:3\n",
      device);
  return text;
}

std::string reshaping_lines(const std::string& device, Bandwidth rate) { return class_lines("change", device, rate); }

std::string rate_query(const std::string& device) { return fmt::format("class show dev {}\n", device); }

std::vector<Bandwidth> shown_rates(const std::string& answers) {
  std::vector<Bandwidth> rates;
  std::istringstream lines(answers);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kWhole = "class htb 1:1 root rate ";
    if (!line.starts_with(kWhole)) continue;
    std::istringstream words(line.substr(kWhole.size()));
    double number = 0;
    std::string unit;
    words >> number >> unit;
    static const std::map<std::string, double> kUnits = {
        {"bit", 1}, {"Kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"Tbit", 1e12}};
    const auto factor = kUnits.find(unit);
    if (!words || factor == kUnits.end()) throw TestbedError(fmt::format("cannot understand tc: {}", line));
    rates.push_back({number * factor->second / 8});
  }
  return rates;
}

int frames_at_once(Bandwidth nic) {
  return static_cast<int>(std::clamp(nic.bytes_per_second * kPassSeconds / kMtu, 1.0, 7.0));  // 64 kB at most
}

int send_buffer(Bandwidth nic) {
  return static_cast<int>(std::clamp(nic.bytes_per_second * kSendSeconds, kLeastSend, kMostSend));
}

std::string route_settings(Bandwidth nic, Bandwidth slowest) {
  const double queue_seconds = kFlows * send_buffer(nic) / slowest.bytes_per_second;
  const double timer = std::clamp(2 * queue_seconds, kUsualTimer, kLongestTimer);
  return fmt::format("rto_min {}ms", std::llround(timer * 1e3));
}

std::vector<std::pair<std::string, std::string>> tcp_settings(Bandwidth nic) {
  return {
      {"ipv4/tcp_congestion_control", "reno"},
      {"ipv4/tcp_rmem", fmt::format("4096 {0} {0}", kReceiveBuffer)},
      {"ipv4/tcp_wmem", fmt::format("4096 {0} {0}", send_buffer(nic))},
      {"ipv4/tcp_no_metrics_save", "1"},
      // Data that an acknowledgement has overtaken would be refused as too old.
      {"ipv4/tcp_timestamps", "0"},
      {"ipv4/tcp_slow_start_after_idle", "0"},
      // No probes after twice the usual round trip: queues come and go.
      {"ipv4/tcp_early_retrans", "0"},
  };
}

}  // namespace dssync
