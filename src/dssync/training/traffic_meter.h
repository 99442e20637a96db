// What the links carry while the workers iterate, without what evaluations send. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace dssync {

class TrafficMeter {
 public:
  using Count = std::function<std::vector<std::uint64_t>()>;

  // `count` tells the bytes that every link has carried since some time; null: nothing is measured.
  explicit TrafficMeter(Count count) : count_(std::move(count)) {}

  void start() {
    if (count_) before_ = count_();
  }

  void stop() {
    if (!count_) return;
    const std::vector<std::uint64_t> now = count_();
    bytes_.resize(now.size());
    for (std::size_t link = 0; link < now.size(); ++link) bytes_[link] += now[link] - before_[link];
    before_ = now;
  }

  // Carried between start() and stop(), in all; none where nothing is measured.
  const std::vector<std::uint64_t>& bytes() const { return bytes_; }

 private:
  Count count_;
  std::vector<std::uint64_t> before_;
  std::vector<std::uint64_t> bytes_;
};

}  // namespace dssync
