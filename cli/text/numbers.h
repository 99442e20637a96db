// Plain numbers for people; quantities with units are in dssync/base/units.h. Pure; thread-safe.
#pragma once

#include <string>

namespace dssync::cli {

// A disagreement in three significant digits: "0.41", "0", "unbounded".
std::string format_disagreement(double value);

// "1.5 s", "20 ms".
std::string seconds_text(double seconds);

// The smallest decimal of four significant digits that is not below `value`, so that it serves as a limit in turn.
std::string rounded_up(double value);

// "3.82x", "477x".
std::string format_ratio(double ratio);

// "3.8x as fast as", "as fast as", "1.2x slower than": how `seconds` compares with `other`. REQUIRES: both positive.
std::string compare_speed(double seconds, double other);

}  // namespace dssync::cli
