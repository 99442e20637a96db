// The axis of a chart: its range, its ticks at round values, and where a value stands on it. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

namespace dssync {

enum class Unit { kPlain, kPercent, kSeconds };

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  double low = 0;
  double high = 1;
  bool is_logarithmic = false;
  Unit unit = Unit::kPlain;
  std::vector<Tick> ticks;
  std::string unit_name;  // of the labels, where they do not carry it: "s", "ms"

  // 0 at the low end, 1 at the high one; values beyond are moved to the ends.
  double place(double value) const;
};

// Holds [low, high], begins and ends at a tick, and has about `wanted` of them. Seconds share one unit. Percent are
// given as shares of 1. REQUIRES: low <= high, finite.
Axis linear_axis(double low, double high, Unit unit, int wanted);

// The same in powers of ten, with 2 and 5 between them where there are few. REQUIRES: 0 < low <= high.
Axis logarithmic_axis(double low, double high, Unit unit);

// Linear, unless the values span decades (a factor above 30) and are all positive.
Axis fitting_axis(double low, double high, Unit unit, int wanted);

}  // namespace dssync
