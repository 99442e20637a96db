// Numbers of ranks, nodes and links as indices of vectors.
#pragma once

#include <cstddef>

namespace dssync {

// REQUIRES: value >= 0.
constexpr std::size_t index(int value) { return static_cast<std::size_t>(value); }

}  // namespace dssync
