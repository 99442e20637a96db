// Many names in little room: "a0 a1 a2 a3" becomes "a[0-3]", the way topology files write them. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace dssync {

// Names that differ in a number become one pattern: {"r0h0", "r0h1", "r1h0", "r1h1"} -> {"r[0-1]h[0-1]"}. Every pattern
// stands where its first name stood; padding is kept; a pattern names exactly what went in.
std::vector<std::string> fold_names(const std::vector<std::string>& names);

}  // namespace dssync
