// Text in HTML and SVG: escaping, numbers, and the values that the page shows. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dssync {

// Safe between tags and inside quoted attributes; bytes that are not UTF-8 and control characters become U+FFFD.
std::string escaped(std::string_view text);

// A coordinate: at most one digit after the point, "12", "12.5".
std::string coordinate(double value);

// As escaped text with spaces that do not break: "86.2 %", "340 ms", "1.6 MB", "4.1x" and so on.
std::string shown_percent(double share, int decimals = 1);
std::string shown_seconds(double seconds);
std::string shown_bytes(double bytes);
std::string shown_rate(double bytes_per_second);
std::string shown_ratio(double ratio);
// "12,345".
std::string shown_count(std::int64_t count);
// Three significant digits, as "0.012" or "1.2e-05".
std::string shown_number(double value);

inline constexpr double kChartWidth = 560;  // of every chart, in units of its drawing

// Opens a drawing with its title and description for those who cannot see it. `attributes` are further ones of the
// element, such as a class.
struct Drawing {
  std::string id;  // unique in the page; letters, digits and dashes
  std::string title;
  std::string description;
  double width = 0;
  double height = 0;
  std::string attributes = {};
};
std::string begin_svg(const Drawing& drawing);

// A legend's entry: a small filled box of this class, and its name.
std::string legend_box(std::string_view style, std::string_view name);

// The first `limit` characters, with an ellipsis for what was cut. Not escaped yet.
std::string shortened(std::string_view text, std::size_t limit);
// The width of the text in a chart's letters of 1 unit in height, roughly.
double text_width(std::string_view text);

}  // namespace dssync
