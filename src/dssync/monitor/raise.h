// A value that only grows.
#pragma once

#include <algorithm>

namespace dssync {

inline void raise(double& value, double to) { value = std::max(value, to); }

}  // namespace dssync
