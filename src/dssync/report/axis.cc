#include "dssync/report/axis.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "dssync/base/units.h"
#include "dssync/report/markup.h"

namespace dssync {
namespace {

constexpr double kDecades = 30;

// 1, 2, 2.5 or 5 times a power of ten, not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// The digits after the point that multiples of the step need.
int decimals_of(double step) {
  for (int decimals = 0; decimals < 12; ++decimals) {
    const double scaled = step * std::pow(10, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return 12;
}

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit time_unit_for(double high) {
  if (high > 2 * 3600) return {3600, "h"};
  if (high > 10 * 60) return {60, "min"};
  if (high >= 1) return {1, "s"};
  return high >= 1e-3 ? TimeUnit{1e-3, "ms"} : TimeUnit{1e-6, "us"};
}

// Large numbers in three-digit groups, others with as many decimals as the step.
std::string plain_label(double value, double step) {
  if (std::abs(value) >= 1e15 || (step < 1e-6 && value != 0)) return fmt::format("{:.3g}", value);
  const int decimals = decimals_of(step);
  return decimals == 0 ? shown_count(std::llround(value)) : fmt::format("{:.{}f}", value, decimals);
}

std::string power_label(double value, Unit unit) {
  if (unit == Unit::kSeconds) return format_duration(Seconds(value));
  if (unit == Unit::kPercent) return fmt::format("{:g} %", 100 * value);
  return value >= 1e-3 && value < 1e6 ? fmt::format("{:g}", value) : fmt::format("{:.0e}", value);
}

}  // namespace

double Axis::place(double value) const {
  const double share =
      is_logarithmic ? std::log(std::max(value, low) / low) / std::log(high / low) : (value - low) / (high - low);
  return std::clamp(share, 0.0, 1.0);
}

Axis linear_axis(double low, double high, Unit unit, int wanted) {
  if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high))) {
    const double room = high == 0 ? 1 : std::abs(high) / 2;
    low -= low >= 0 ? std::min(room, low) : room;
    high += room;
  }
  Axis axis{.low = low, .high = high, .is_logarithmic = false, .unit = unit, .ticks = {}, .unit_name = {}};
  double scale = 1;
  if (unit == Unit::kPercent) {
    scale = 0.01;
    axis.unit_name = "%";
  } else if (unit == Unit::kSeconds) {
    const TimeUnit chosen = time_unit_for(std::max(std::abs(low), std::abs(high)));
    scale = chosen.seconds;
    axis.unit_name = chosen.name;
  }
  const double step = round_step((high - low) / scale / std::max(1, wanted - 1));
  const double first = std::floor(low / scale / step + 1e-9);
  const double last = std::ceil(high / scale / step - 1e-9);
  axis.low = first * step * scale;
  axis.high = last * step * scale;
  for (int i = 0; i <= static_cast<int>(last - first); ++i) {
    const double value = (first + i) * step;
    axis.ticks.push_back({value * scale, plain_label(value, step)});
  }
  return axis;
}

Axis logarithmic_axis(double low, double high, Unit unit) {
  const double first = std::floor(std::log10(low) + 1e-9);
  double last = std::ceil(std::log10(high) - 1e-9);
  if (last <= first) last = first + 1;
  Axis axis{.low = low, .high = high, .is_logarithmic = true, .unit = unit, .ticks = {}, .unit_name = {}};
  const bool is_short = last - first <= 3;
  const double stride = std::max(1.0, std::ceil((last - first) / 8));
  for (double power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const bool is_wanted = factor == 1 || (is_short && power < last);
      const double value = factor * std::pow(10, power);
      if (is_wanted) axis.ticks.push_back({value, power_label(value, unit)});
    }
  }
  // Where there are ticks between the powers, the axis need not go on to the next power.
  const auto below = [low](const Tick& tick) { return tick.value <= low * (1 + 1e-9); };
  while (axis.ticks.size() > 2 && below(axis.ticks[1])) axis.ticks.erase(axis.ticks.begin());
  const auto above = [high](const Tick& tick) { return tick.value >= high * (1 - 1e-9); };
  while (axis.ticks.size() > 2 && above(axis.ticks[axis.ticks.size() - 2])) axis.ticks.pop_back();
  axis.low = std::min(low, axis.ticks.front().value);
  axis.high = std::max(high, axis.ticks.back().value);
  return axis;
}

Axis fitting_axis(double low, double high, Unit unit, int wanted) {
  if (low > 0 && high / low > kDecades) return logarithmic_axis(low, high, unit);
  return linear_axis(low, high, unit, wanted);
}

}  // namespace dssync
