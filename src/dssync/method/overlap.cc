#include "dssync/method/overlap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

constexpr std::array<std::pair<Overlap, const char*>, 4> kOverlaps = {{
    {Overlap::kAuto, "auto"},
    {Overlap::kLayered, "layered"},
    {Overlap::kCombine, "combine"},
    {Overlap::kInLine, "none"},
}};

// From which on a bucket is worth its messages: on a fast network, and on a slow one.
constexpr double kWorthwhileBucketBytes = 1 << 20;
constexpr Seconds kWorthwhileBucketTime{0.0035};

constexpr double kNegligible = 1e-6;

// What an iteration takes with averages in this order, and a little for every layer that waits longer than it must.
double cost_of(const std::vector<std::size_t>& order, double compute, double communication) {
  const double part = 1 / static_cast<double>(order.size());
  const double backward = compute * (1 - kForwardPart);
  std::array<double, kMostBuckets> done{};
  double free = 0;  // the network
  for (const std::size_t bucket : order) {
    free = std::max(free, backward * part * static_cast<double>(bucket + 1)) + communication * part;
    done[bucket] = free;
  }
  double now = backward;
  double starts = 0;
  for (std::size_t bucket = order.size(); bucket-- > 0;) {
    now = std::max(now, done[bucket]);
    starts += now;
    now += compute * kForwardPart * part;
  }
  return now + 1e-3 * part * starts;
}

// Takes one bucket after the other to where it costs least, as long as that helps. Returns the cost.
double improve(std::vector<std::size_t>& order, double compute, double communication) {
  double least = cost_of(order, compute, communication);
  for (bool is_better = true; is_better;) {
    std::vector<std::size_t> best = order;
    is_better = false;
    for (std::size_t from = 0; from < order.size(); ++from) {
      std::vector<std::size_t> moved = order;
      moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(from));
      moved.insert(moved.begin(), order[from]);
      for (std::size_t to = 0; to < order.size(); ++to) {
        if (to > 0) std::swap(moved[to - 1], moved[to]);
        const double cost = cost_of(moved, compute, communication);
        if (cost >= least * (1 - kNegligible)) continue;
        least = cost;
        best = moved;
        is_better = true;
      }
    }
    order = std::move(best);
  }
  return least;
}

}  // namespace

std::string name_of(Overlap overlap) {
  for (const auto& [known, name] : kOverlaps) {
    if (known == overlap) return name;
  }
  return "";
}

Overlap overlap_from_name(const std::string& name) {
  if (name == "on" || name == "true") return Overlap::kAuto;
  if (name == "off" || name == "false") return Overlap::kInLine;
  for (const auto& [overlap, known] : kOverlaps) {
    if (name == known) return overlap;
  }
  throw InputError(fmt::format("expected one of auto, layered, combine, none, but found '{}'", name));
}

Overlap resolve(Overlap asked, bool can_step_early) {
  if (asked != Overlap::kAuto) return asked;
  return can_step_early ? Overlap::kLayered : Overlap::kInLine;
}

std::size_t buckets_of(double bytes, Seconds communication) {
  const double worthwhile = std::max(bytes / kWorthwhileBucketBytes, communication / kWorthwhileBucketTime);
  return static_cast<std::size_t>(std::clamp(std::floor(worthwhile), 1.0, static_cast<double>(kMostBuckets)));
}

std::vector<std::size_t> order_of_averages(std::size_t buckets, Seconds compute, Seconds communication) {
  std::vector<std::size_t> best(buckets);
  std::iota(best.begin(), best.end(), 0);
  if (buckets > kMostBuckets) return best;
  double least = cost_of(best, compute.count(), communication.count());
  // The first ones as they are completed, and then what the forward pass needs first.
  for (std::size_t first = 0; first <= buckets; ++first) {
    std::vector<std::size_t> order(buckets);
    std::iota(order.begin(), order.end(), 0);
    std::reverse(order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
    const double cost = improve(order, compute.count(), communication.count());
    if (cost >= least * (1 - kNegligible)) continue;
    least = cost;
    best = std::move(order);
  }
  return best;
}

Seconds layered_seconds(std::size_t buckets, Seconds compute, Seconds communication) {
  const double part = 1 / static_cast<double>(buckets);
  const Seconds forward = compute * kForwardPart;
  return std::max(compute + communication * part,
                  communication + (compute + (buckets > 1 ? forward : Seconds(0))) * part);
}

}  // namespace dssync
