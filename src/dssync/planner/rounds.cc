// Rounds in terms of ranks.
#include "dssync/planner/rounds.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr std::size_t kNamesInLabel = 3;

// "pairs", "groups of 4", "groups of 3 to 4"; empty for groups of one alone.
std::string describe(const Division& groups) {
  std::size_t least = 0;
  std::size_t most = 0;
  for (const std::vector<int>& group : groups) {
    if (group.size() > 1) {
      least = least == 0 ? group.size() : std::min(least, group.size());
      most = std::max(most, group.size());
    }
  }
  if (most == 0) {
    return "";
  }
  if (most == 2) {
    return "pairs";
  }
  return least == most ? fmt::format("groups of {}", most) : fmt::format("groups of {} to {}", least, most);
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesInLabel); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamesInLabel) {
    text += fmt::format(" and {} more", names.size() - kNamesInLabel);
  }
  return text;
}

}  // namespace

Division union_of(const Division& division, const std::vector<std::vector<int>>& parts) {
  Division result;
  for (const std::vector<int>& group : division) {
    std::vector<int> members;
    for (const int part : group) {
      const std::vector<int>& inside = parts[static_cast<std::size_t>(part)];
      members.insert(members.end(), inside.begin(), inside.end());
    }
    result.push_back(std::move(members));
  }
  return result;
}

void RoundBuilder::add(const Division& groups, const std::string& where) {
  for (const std::vector<int>& group : groups) {
    groups_.push_back(replicas_.ranks_of(group));
  }
  const bool whole = groups.size() == 1;
  const std::string what = whole ? "whole" : describe(groups);
  if (what.empty()) {
    return;
  }
  auto place = std::find_if(places_.begin(), places_.end(), [&](const auto& other) { return other.first == what; });
  if (place == places_.end()) {
    place = places_.insert(places_.end(), {what, {}});
  }
  place->second.push_back(where);
}

Round RoundBuilder::finish() {
  Round round;
  const auto workers = static_cast<std::size_t>(replicas_.workers());
  if (groups_.size() == 1 && groups_.front().size() == workers && workers > 1) {
    round.label = "all";
  } else if (places_.empty()) {
    round.label = "nobody";
  }
  for (const auto& [what, where] : places_) {
    if (round.label != "all") {
      round.label += (round.label.empty() ? "" : "; ") + what + (what == "whole" ? " " : " in ") + list(where);
    }
  }
  std::vector<bool> seen(workers, false);
  for (const Group& group : groups_) {
    for (const Rank rank : group) {
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
  round.groups = std::move(groups_);
  for (const Group& alone : replicas_.groups()) {
    if (!seen[static_cast<std::size_t>(alone.front())]) {
      round.groups.push_back(alone);
    }
  }
  std::sort(round.groups.begin(), round.groups.end());
  return round;
}

Round make_round(const Division& groups, const Replicas& replicas) {
  RoundBuilder builder(replicas);
  const bool whole = groups.size() == 1 && groups.front().size() == static_cast<std::size_t>(replicas.count());
  builder.add(groups, whole ? "" : "the network");
  return builder.finish();
}

}  // namespace dssync
