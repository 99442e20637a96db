#include "dssync/planner/exact_inside.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/topology/levels.h"

namespace dssync {
namespace {

constexpr std::array<const char*, 3> kLevelNames = {"host", "rack", "site"};

// As Plan::replicas.
std::vector<Group> regions_at(const Topology& topology, int level) {
  std::vector<Group> places = places_at(topology, level);
  return static_cast<int>(places.size()) == topology.workers() ? std::vector<Group>() : places;
}

double seconds_of(const Topology& topology, const PlanRequest& request, const std::vector<Group>& replicas) {
  Planner planner(topology, request.bytes, request.group_limit, replicas, request.codecs);
  const std::optional<Plan> plan = request.published ? planner.published() : planner.best(request.disagreement);
  return plan ? visible_seconds(*plan, request.backward) : std::numeric_limits<double>::infinity();
}

std::vector<Group> largest_free(const Topology& topology, const PlanRequest& request) {
  std::vector<Group> chosen = regions_at(topology, 0);
  double least = seconds_of(topology, request, chosen);
  for (int level = 1; level <= top_level(topology); ++level) {
    std::vector<Group> wider = regions_at(topology, level);
    if (wider == chosen) continue;
    const double seconds = seconds_of(topology, request, wider);
    if (seconds > least * (1 + 1e-9)) break;
    chosen = std::move(wider);
    least = seconds;
  }
  return chosen;
}

}  // namespace

std::string name_of(const ExactInside& exact) {
  switch (exact.kind) {
    case ExactInside::Kind::kNowhere:
      return "none";
    case ExactInside::Kind::kAuto:
      return "auto";
    case ExactInside::Kind::kLevel:
      break;
  }
  const auto level = static_cast<std::size_t>(exact.level);
  return level < kLevelNames.size() ? kLevelNames[level] : std::to_string(level);
}

ExactInside exact_inside_from_name(const std::string& name) {
  if (name == "none") return {ExactInside::Kind::kNowhere};
  if (name == "auto") return {ExactInside::Kind::kAuto};
  int level = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), level);
  if (error == std::errc() && end == name.data() + name.size() && level >= 0 && level <= Topology::kMaxDepth) {
    return {ExactInside::Kind::kLevel, level};
  }
  const auto* const known = std::find(kLevelNames.begin(), kLevelNames.end(), name);
  if (known != kLevelNames.end()) return {ExactInside::Kind::kLevel, static_cast<int>(known - kLevelNames.begin())};
  throw InputError(
      fmt::format("expected none, host, rack, site, the number of a level, or auto, but found '{}'", name));
}

double visible_seconds(const Plan& plan, Seconds backward) {
  const auto whole = [](const Cost& cost) { return cost.seconds_per_iteration + cost.pipeline_seconds; };
  return std::max(0.0, whole(plan.inside) - backward.count()) + whole(plan.cost);
}

std::vector<Group> choose_replicas(const Topology& topology, const PlanRequest& request) {
  switch (request.exact_inside.kind) {
    case ExactInside::Kind::kNowhere:
      return {};
    case ExactInside::Kind::kLevel:
      return regions_at(topology, request.exact_inside.level);
    case ExactInside::Kind::kAuto:
      return largest_free(topology, request);
  }
  return {};
}

}  // namespace dssync
