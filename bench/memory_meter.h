// Counts what is allocated with new, by replacing it. Not thread-safe: for single-threaded benchmarks.
#pragma once

#include <cstddef>

namespace dssync::bench {

std::size_t allocated_bytes();
// The most that was allocated at once since the last reset.
std::size_t peak_bytes();
void reset_peak();

}  // namespace dssync::bench
