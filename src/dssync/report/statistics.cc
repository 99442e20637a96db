#include "dssync/report/statistics.h"

#include <algorithm>
#include <cmath>

namespace dssync {
namespace {

void drop_what_is_not_finite(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
}

std::vector<Point> finite(const std::vector<Point>& points) {
  std::vector<Point> result;
  for (const Point& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) result.push_back(point);
  }
  return result;
}

double sorted_quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  drop_what_is_not_finite(values);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return sorted_quantile(values, share);
}

Spread spread_of(std::vector<double> values) {
  drop_what_is_not_finite(values);
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {sorted_quantile(values, 0.1), sorted_quantile(values, 0.5), sorted_quantile(values, 0.9)};
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::vector<Bucket> in_buckets(const std::vector<Point>& points, std::size_t limit) {
  const std::vector<Point> all = finite(points);
  const std::size_t count = std::min(limit, all.size());
  std::vector<Bucket> result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * all.size() / count;
    const std::size_t end = (i + 1) * all.size() / count;
    double x = 0;
    std::vector<double> values;
    for (std::size_t at = begin; at < end; ++at) {
      x += all[at].x / static_cast<double>(end - begin);
      values.push_back(all[at].y);
    }
    result.push_back({x, spread_of(std::move(values))});
  }
  return result;
}

std::vector<Point> smoothed(const std::vector<Point>& points, std::size_t reach, std::size_t limit) {
  const std::vector<Point> all = finite(points);
  const std::size_t count = std::min(limit, all.size());
  std::vector<double> sums{0};
  for (const Point& point : all) sums.push_back(sums.back() + point.y);
  std::vector<Point> result;
  for (std::size_t i = 0; i < count; ++i) {
    // The first and the last point stay, whatever the limit.
    const std::size_t at = count == 1 ? all.size() - 1 : i * (all.size() - 1) / (count - 1);
    const std::size_t begin = at < reach ? 0 : at - reach;
    const std::size_t end = std::min(all.size(), at + reach + 1);
    result.push_back({all[at].x, (sums[end] - sums[begin]) / static_cast<double>(end - begin)});
  }
  return result;
}

}  // namespace dssync
