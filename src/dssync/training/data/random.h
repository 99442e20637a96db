// Random numbers that are the same everywhere: std::mt19937_64 is specified to the bit, the distributions and shuffles
// of the standard library are not. Not thread-safe.
#pragma once

#include <cstdint>
#include <random>

namespace dssync {

class Random {
 public:
  // Streams of one seed are independent of each other.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : engine_(mixed(mixed(seed) ^ stream)) {}

  std::uint64_t bits() { return engine_(); }

  // Evenly from 0..limit-1. REQUIRES: limit > 0.
  std::uint64_t below(std::uint64_t limit) {
    const std::uint64_t rejected = -limit % limit;  // 2^64 mod limit: what would favour the small numbers
    std::uint64_t drawn = bits();
    while (drawn < rejected) drawn = bits();
    return drawn % limit;
  }

  // Evenly from [low, high).
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }

  // Nearly normal, mean 0 and variance 1: the sum of four even ones. Cheap, and exact in every floating point unit.
  double noise() {
    const std::uint64_t drawn = bits();
    std::int64_t sum = 0;
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int64_t>((drawn >> shift) & 0xffff);
    return (static_cast<double>(sum) - 2 * 65535.0) / (65536.0 * 0.57735026918962573);
  }

 private:
  // Neighbouring seeds become far ones (the finalizer of SplitMix64).
  static std::uint64_t mixed(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  std::mt19937_64 engine_;
};

}  // namespace dssync
