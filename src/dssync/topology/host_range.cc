// Expansion of bracket ranges in names.
#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/topology/read.h"

namespace dssync {
namespace {

// So that a short pattern cannot ask for more memory than its names are worth.
constexpr std::size_t kLongestName = 255;

[[noreturn]] void fail(std::string_view pattern, std::string_view problem) {
  throw InputError(fmt::format("the name {} {}; expected a name such as node7 or a range such as node[0-3,08-12]",
                               quote(pattern), problem));
}

// "01-03": from 1 to 3, two digits wide.
struct Range {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::size_t width = 0;
};

// A pattern is an alternation of fixed text and choices. An empty list of choices stands for none.
struct Piece {
  std::string_view fixed;
  std::vector<Range> choices;  // after the fixed text
};

std::uint64_t parse_number(std::string_view digits, std::string_view pattern) {
  constexpr std::size_t kMostDigits = 18;
  if (digits.empty()) fail(pattern, "has an empty place in its brackets");
  if (digits.size() > kMostDigits) fail(pattern, "has a number that is too long in its brackets");
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value).ptr != end) fail(pattern, "has no number where brackets need one");
  return value;
}

Range parse_range(std::string_view text, std::string_view pattern) {
  const std::size_t dash = text.find('-');
  const std::string_view from = text.substr(0, dash);
  Range range;
  range.from = parse_number(from, pattern);
  range.to = dash == std::string_view::npos ? range.from : parse_number(text.substr(dash + 1), pattern);
  range.width = from.size() > 1 && from.front() == '0' ? from.size() : 1;
  if (range.to < range.from) fail(pattern, "has a range that runs backwards");
  return range;
}

std::vector<Range> parse_choices(std::string_view text, std::string_view pattern) {
  std::vector<Range> ranges;
  while (true) {
    const std::size_t comma = text.find(',');
    ranges.push_back(parse_range(text.substr(0, comma), pattern));
    if (comma == std::string_view::npos) return ranges;
    text.remove_prefix(comma + 1);
  }
}

std::vector<Piece> parse_pattern(std::string_view pattern) {
  std::vector<Piece> pieces;
  std::string_view rest = pattern;
  while (!rest.empty()) {
    const std::size_t open = rest.find('[');
    const std::string_view fixed = rest.substr(0, open);
    if (fixed.find(']') != std::string_view::npos) fail(pattern, "has a ] without a [");
    if (fixed.find(',') != std::string_view::npos) fail(pattern, "has a comma outside brackets");
    if (open == std::string_view::npos) {
      pieces.push_back({fixed, {}});
      break;
    }
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) fail(pattern, "has a [ without a ]");
    pieces.push_back({fixed, parse_choices(rest.substr(open + 1, close - open - 1), pattern)});
    rest.remove_prefix(close + 1);
  }
  return pieces;
}

// Throws unless the pattern stands for at most `limit` names of bearable length.
void check_size(const std::vector<Piece>& pieces, std::string_view pattern, std::size_t limit) {
  std::uint64_t names = 1;
  std::size_t length = 0;
  for (const Piece& piece : pieces) {
    length += piece.fixed.size();
    if (piece.choices.empty()) continue;
    std::uint64_t count = 0;
    std::size_t digits = 0;
    for (const Range& range : piece.choices) {
      count = std::min<std::uint64_t>(count + (range.to - range.from + 1), limit + std::uint64_t{1});
      digits = std::max({digits, range.width, std::to_string(range.to).size()});
    }
    length += digits;
    names = std::min<std::uint64_t>(names * count, limit + std::uint64_t{1});  // both below 2^32: no overflow
  }
  if (length > kLongestName) fail(pattern, fmt::format("is longer than {} bytes", kLongestName));
  if (names > limit) {
    throw InputError(
        fmt::format("the range {} stands for too many names; expected at most {} here", quote(pattern), limit));
  }
}

}  // namespace

std::vector<std::string> expand_host_range(std::string_view pattern, std::size_t limit) {
  if (pattern.empty()) fail(pattern, "is empty");
  const std::vector<Piece> pieces = parse_pattern(pattern);
  check_size(pieces, pattern, std::min<std::size_t>(limit, Topology::kMaxWorkers));
  std::vector<std::string> names{""};
  for (const Piece& piece : pieces) {
    for (std::string& name : names) name += piece.fixed;
    if (piece.choices.empty()) continue;
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const Range& range : piece.choices) {
        for (std::uint64_t i = range.from; i <= range.to; ++i) {
          longer.push_back(fmt::format("{}{:0{}}", name, i, range.width));
        }
      }
    }
    names = std::move(longer);
  }
  return names;
}

}  // namespace dssync
