#include "text/rounds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/matrix.h"
#include "text/round_matrix.h"

namespace dssync::cli {
namespace {

constexpr std::size_t kMaxColumns = 20;  // of rounds; longer cycles show each different round once
constexpr std::size_t kMaxBlocks = 3;
constexpr std::size_t kMaxLegend = 16;
constexpr std::size_t kMaxPlaces = 28;  // of the list of places of one round

// One column of the drawing: a round, and the places in the cycle (from 1) where it stands.
struct Column {
  const Round* round;
  std::vector<std::size_t> places;
};

std::vector<Column> different_rounds(const Schedule& schedule) {
  std::vector<Column> result;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto same = std::find_if(result.begin(), result.end(),
                                   [&](const Column& column) { return column.round->groups == schedule[i].groups; });
    if (same == result.end()) {
      result.push_back({&schedule[i], {i + 1}});
    } else {
      same->places.push_back(i + 1);
    }
  }
  return result;
}

// {1, 2, 3, 7} -> "1-3, 7".
std::string places_text(const std::vector<std::size_t>& places) {
  std::string result;
  for (std::size_t i = 0; i < places.size();) {
    std::size_t end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    if (!result.empty()) result += ", ";
    result += end - i > 1 ? fmt::format("{}-{}", places[i], places[end - 1]) : fmt::format("{}", places[i]);
    i = end;
  }
  return result;
}

// "64 groups of 64", "3 groups of 10 to 11, 5 workers alone".
std::string sizes_text(const Round& round) {
  std::size_t alone = 0;
  std::size_t groups = 0;
  std::size_t smallest = 0;
  std::size_t largest = 0;
  for (const Group& group : round.groups) {
    if (group.size() == 1) {
      ++alone;
      continue;
    }
    smallest = groups == 0 ? group.size() : std::min(smallest, group.size());
    largest = std::max(largest, group.size());
    ++groups;
  }
  if (groups == 0) return "no groups";
  const std::string sizes =
      smallest == largest ? fmt::format("{}", largest) : fmt::format("{} to {}", smallest, largest);
  const std::string rest = alone == 0 ? "" : fmt::format(", {} alone", counted(alone, "worker"));
  return fmt::format("{} of {}{}", counted(groups, "group"), sizes, rest);
}

// What each different round is called, and how large its groups are.
std::string draw_legend(const std::vector<Column>& columns, const Style& style) {
  const std::size_t shown = std::min(columns.size(), kMaxLegend);
  std::vector<std::string> keys;
  std::size_t key_columns = 0;
  std::size_t size_columns = 0;
  for (std::size_t i = 0; i < shown; ++i) {
    keys.push_back(clip(places_text(columns[i].places), kMaxPlaces, style));
    key_columns = std::max(key_columns, width(keys[i]));
    size_columns = std::max(size_columns, width(sizes_text(*columns[i].round)));
  }
  const std::size_t room = kPageWidth - std::min(kPageWidth - 20, 2 + 6 + key_columns + 2 + size_columns + 2);
  std::string result;
  for (std::size_t i = 0; i < shown; ++i) {
    result += fmt::format("  round {}  {}  {}\n", pad_right(keys[i], key_columns),
                          pad_right(sizes_text(*columns[i].round), size_columns),
                          clip(printable(columns[i].round->label), room, style));
  }
  if (columns.size() > shown) {
    result += fmt::format("  {} and {} (--format json lists all)\n", style.glyphs().ellipsis,
                          counted(columns.size() - shown, "more round"));
  }
  return result;
}

}  // namespace

std::size_t meetings_of_all(const Schedule& schedule) {
  return static_cast<std::size_t>(
      std::count_if(schedule.begin(), schedule.end(), [](const Round& round) { return round.groups.size() == 1; }));
}

std::string draw_rounds(const Schedule& schedule, const Topology& topology, const Style& style) {
  const std::vector<Column> kinds = different_rounds(schedule);
  const bool every_round = schedule.size() <= kMaxColumns;
  std::vector<Column> columns;
  for (std::size_t i = 0; every_round && i < schedule.size(); ++i) columns.push_back({&schedule[i], {i + 1}});
  if (!every_round) columns = kinds;

  std::vector<const Round*> rounds;
  for (const Column& column : columns) rounds.push_back(column.round);
  Matrix matrix = worker_matrix(rounds, topology, style);
  const bool by_worker = !matrix.rows.empty();
  if (!by_worker) matrix = level_matrix(rounds, topology, style);
  for (const Column& column : columns) matrix.header.push_back(fmt::format("{}", column.places.front()));

  const Glyphs& g = style.glyphs();
  const std::string key =
      by_worker
          ? fmt::format("Same letter in a column: these workers average together. {} = keeps its own step.", g.alone)
          : fmt::format("How far groups reach: {} all workers, {} half or more, {} fewer, {} none.", g.full, g.more,
                        g.less, g.alone);
  return "  " + style.paint(key, Tint::kDim) + "\n\n" + draw_matrix(matrix, kMaxBlocks, style) + "\n" +
         draw_legend(kinds, style);
}

}  // namespace dssync::cli
