// Figures of many values, and many points made few for a chart. Values that are not finite are left out. Pure;
// thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace dssync {

// The middle of a distribution and where its bulk lies: the quantiles 0.1, 0.5 and 0.9.
struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};

// With linear interpolation between the two nearest values. REQUIRES: values, and 0 <= share <= 1.
double quantile(std::vector<double> values, double share);

// All zero where there are no values.
Spread spread_of(std::vector<double> values);

// 0 where there are no values.
double mean_of(const std::vector<double>& values);

struct Point {
  double x = 0;
  double y = 0;
};

// Points that stand for a range of x each.
struct Bucket {
  double x = 0;  // the mean
  Spread y;
};

// At most `limit` buckets of as many neighbouring points each, in the given order.
std::vector<Bucket> in_buckets(const std::vector<Point>& points, std::size_t limit);

// The mean of each point with its neighbours, `reach` on both sides as far as there are; then at most `limit` of them.
std::vector<Point> smoothed(const std::vector<Point>& points, std::size_t reach, std::size_t limit);

}  // namespace dssync
