#include "text/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "dssync/base/units.h"

namespace dssync::cli {

std::string format_disagreement(double value) {
  if (std::isinf(value)) return "unbounded";
  return value < 1e-9 ? "0" : fmt::format("{:.3g}", value);
}

std::string seconds_text(double seconds) { return format_duration(Seconds(seconds)); }

std::string rounded_up(double value) {
  if (!(value > 0)) return "0";
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(value))));
  const double step = std::pow(10.0, -decimals);
  std::string text;
  // The division may round either way, so start one step low.
  for (double steps = std::floor(value / step) - 1; text.empty() || std::strtod(text.c_str(), nullptr) < value;
       ++steps) {
    text = fmt::format("{:.{}f}", steps * step, decimals);
  }
  if (decimals == 0) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string format_ratio(double ratio) {
  return ratio < 100 ? fmt::format("{:.3g}x", ratio) : fmt::format("{:.0f}x", ratio);
}

std::string compare_speed(double seconds, double other) {
  const double ratio = other / seconds;
  if (std::abs(ratio - 1) < 0.005) return "as fast as";
  return ratio > 1 ? format_ratio(ratio) + " as fast as" : format_ratio(1 / ratio) + " slower than";
}

}  // namespace dssync::cli
