// Which codec values travel with, by level of the network. Plain values; thread-safe.
#pragma once

#include <compare>
#include <vector>

#include "dssync/codec/codec.h"
#include "dssync/planner/tuning.h"

namespace dssync {

// A stage uses the codec of the level (topology/levels.h) on which its members meet. Two that mean the same are equal.
class Codecs {
 public:
  Codecs() = default;  // float32 on every level
  explicit Codecs(Codec everywhere, double bytes_per_second = kCodecBytesPerSecond)
      : Codecs(std::vector{everywhere}, bytes_per_second) {}
  // From level 0, inside hosts, outwards; the last one stands for all levels beyond.
  explicit Codecs(std::vector<Codec> by_level, double bytes_per_second = kCodecBytesPerSecond);

  Codec at(int level) const;
  bool is_float32() const { return by_level_.empty(); }

  // Float32 that a worker is taken to encode in a second, or decode.
  double bytes_per_second() const { return bytes_per_second_; }

  auto operator<=>(const Codecs&) const = default;

 private:
  std::vector<Codec> by_level_;  // the last two differ; empty: float32
  double bytes_per_second_ = kCodecBytesPerSecond;
};

}  // namespace dssync
