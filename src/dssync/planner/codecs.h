// Which codec values travel with, by level of the network. Plain values; thread-safe.
#pragma once

#include <compare>
#include <optional>
#include <string>
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
  // Without the levels that the last one stands for; float32 where it is alone.
  std::vector<Codec> by_level() const;
  bool is_float32() const { return by_level_.empty(); }

  // Float32 that a worker is taken to encode in a second, or decode.
  double bytes_per_second() const { return bytes_per_second_; }

  auto operator<=>(const Codecs&) const = default;

 private:
  std::vector<Codec> by_level_;  // the last two differ; empty: float32
  double bytes_per_second_ = kCodecBytesPerSecond;
};

// "float32", "float32/int4": from inside hosts outwards, the last for all levels beyond.
std::string name_of(const Codecs& codecs);

// How averages may travel.
struct CodecChoice {
  std::optional<Codec> codec = Codec::kFloat32;  // on every level; nothing: what is fastest, level by level
  double bytes_per_second = kCodecBytesPerSecond;

  bool is_auto() const { return !codec; }
  bool operator==(const CodecChoice&) const = default;
};

// "auto", or the codec's; the other way, throws InputError with the names.
std::string name_of(const CodecChoice& choice);
std::optional<Codec> codec_choice_from_name(const std::string& name);
std::vector<std::string> codec_choice_names();

}  // namespace dssync
