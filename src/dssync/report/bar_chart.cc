#include "dssync/report/bar_chart.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "dssync/report/markup.h"

namespace dssync {
namespace {

constexpr double kBarsLeft = 8;
constexpr double kBarsRight = 84;  // room for the totals
constexpr double kBarsRow = 44;
constexpr double kBarHeight = 17;
constexpr double kBarsBottom = 44;

double sum_of(const BarRow& row) { return std::accumulate(row.parts.begin(), row.parts.end(), 0.0); }

std::string draw_row(const BarRow& row, double top, const Axis& axis) {
  const double room = kChartWidth - kBarsLeft - kBarsRight;
  std::string out = fmt::format(R"(<text class="label" x="{}" y="{}">{}</text>)", kBarsLeft, coordinate(top + 14),
                                escaped(shortened(row.name, 68)));
  double done = 0;
  for (std::size_t part = 0; part < row.parts.size(); ++part) {
    const double begin = kBarsLeft + room * axis.place(done);
    done += row.parts[part];
    const double end = kBarsLeft + room * axis.place(done);
    if (end - begin < 0.05) continue;
    const std::string style = row.style < 0 ? fmt::format("part p{}", part) : fmt::format("part f{}", row.style % 8);
    out += fmt::format(R"(<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>)", style, coordinate(begin),
                       coordinate(top + 20), coordinate(end - begin), kBarHeight);
  }
  out += fmt::format(R"(<text class="total" x="{}" y="{}">{}</text>)",
                     coordinate(kBarsLeft + room * axis.place(done) + 6), coordinate(top + 33), row.total);
  return out;
}

std::string draw_axis(const BarChart& chart, const Axis& axis, double bottom) {
  const double room = kChartWidth - kBarsLeft - kBarsRight;
  std::string out = R"(<g class="axis">)";
  for (const Tick& tick : axis.ticks) {
    const std::string x = coordinate(kBarsLeft + room * axis.place(tick.value));
    out += fmt::format(R"(<path class="grid" d="M{} 4V{}"/>)", x, coordinate(bottom));
    const bool is_first = &tick == &axis.ticks.front();
    out += fmt::format(R"(<text x="{}" y="{}" text-anchor="{}">{}</text>)", x, coordinate(bottom + 16),
                       is_first ? "start" : "middle", escaped(tick.label));
  }
  const std::string title =
      axis.unit_name.empty() ? chart.x_title : fmt::format("{} ({})", chart.x_title, axis.unit_name);
  out += fmt::format(R"(<text class="name" x="{}" y="{}" text-anchor="middle">{}</text>)",
                     coordinate(kBarsLeft + room / 2), coordinate(bottom + 36), escaped(title));
  return out + "</g>";
}

}  // namespace

std::string draw(const BarChart& chart) {
  if (chart.rows.empty()) return {};
  double longest = 0;
  for (const BarRow& row : chart.rows) longest = std::max(longest, sum_of(row));
  const Axis axis = linear_axis(0, longest, chart.x_unit, 6);
  const double bottom = 4 + kBarsRow * static_cast<double>(chart.rows.size());
  std::string out =
      fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption>{}</figcaption>\n", chart.id, escaped(chart.title));
  std::string legend;
  for (std::size_t part = 0; part < chart.part_names.size(); ++part) {
    legend += legend_box(fmt::format("part p{}", part), chart.part_names[part]);
  }
  if (!legend.empty()) out += "<div class=\"legend\">" + legend + "</div>\n";
  out += begin_svg({chart.id, chart.title, chart.description, kChartWidth, bottom + kBarsBottom});
  out += draw_axis(chart, axis, bottom);
  double top = 4;
  for (const BarRow& row : chart.rows) {
    out += draw_row(row, top, axis);
    top += kBarsRow;
  }
  out += "</svg>\n";
  if (!chart.note.empty()) out += "<p class=\"note\">" + chart.note + "</p>\n";
  return out + "</figure>\n";
}

}  // namespace dssync
