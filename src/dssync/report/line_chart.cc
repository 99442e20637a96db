#include "dssync/report/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "dssync/report/markup.h"

namespace dssync {
namespace {

constexpr double kLinesHeight = 320;
constexpr double kLinesLeft = 58;
constexpr double kLinesRight = 18;
constexpr double kLinesTop = 16;
constexpr double kLinesBottom = 46;
constexpr int kStyles = 8;  // colours that the page defines

std::string marker(int style, double x, double y, double size) {
  const std::string cx = coordinate(x);
  const std::string cy = coordinate(y);
  const auto at = [&](double dx, double dy) { return coordinate(x + dx * size) + " " + coordinate(y + dy * size); };
  switch (style % 5) {
    case 0:
      return fmt::format(R"(<circle cx="{}" cy="{}" r="{}"/>)", cx, cy, coordinate(size));
    case 1:
      return fmt::format(R"(<path d="M{}L{}L{}L{}Z"/>)", at(-.9, -.9), at(.9, -.9), at(.9, .9), at(-.9, .9));
    case 2:
      return fmt::format(R"(<path d="M{}L{}L{}Z"/>)", at(0, -1.2), at(1.1, .8), at(-1.1, .8));
    case 3:
      return fmt::format(R"(<path d="M{}L{}L{}L{}Z"/>)", at(0, -1.3), at(1.3, 0), at(0, 1.3), at(-1.3, 0));
    default:
      return fmt::format(R"(<path d="M{}L{}L{}Z"/>)", at(0, 1.2), at(1.1, -.8), at(-1.1, -.8));
  }
}

std::string style_class(int style) { return fmt::format("s{} d{}", style % kStyles, style % 4); }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

// The axes that hold all of the chart, and the way from values to the page.
class Frame {
 public:
  explicit Frame(const LineChart& chart) {
    Range x;
    Range y;
    for (const Series& series : chart.series) {
      for (const Point& point : series.points) take(chart, point.x, point.y, x, y);
      for (const Bucket& bucket : series.band) {
        take(chart, bucket.x, bucket.y.low, x, y);
        take(chart, bucket.x, bucket.y.high, x, y);
      }
    }
    is_empty_ = x.is_empty();
    if (is_empty_) return;
    if (chart.level) y.take(*chart.level);
    if (chart.y_most) y.high = std::min(y.high, std::max(*chart.y_most, y.low));
    x_ = linear_axis(std::min(0.0, x.low), x.high, chart.x_unit, 6);
    x_.high = std::max(x.high, x_.ticks[x_.ticks.size() - 2].value);  // no empty space after the last point
    while (x_.ticks.back().value > x_.high * (1 + 1e-9)) x_.ticks.pop_back();
    const bool spans_decades = chart.y_may_be_logarithmic && y.low > 0 && y.high / y.low > 30;
    y_ = spans_decades ? logarithmic_axis(y.low, y.high, chart.y_unit)
                       : linear_axis(chart.y_from_zero ? std::min(0.0, y.low) : y.low, y.high, chart.y_unit, 6);
  }

  bool is_empty() const { return is_empty_; }
  const Axis& x_axis() const { return x_; }
  const Axis& y_axis() const { return y_; }
  double x(double value) const { return kLinesLeft + x_.place(value) * (kChartWidth - kLinesLeft - kLinesRight); }
  double y(double value) const {
    return kLinesHeight - kLinesBottom - y_.place(value) * (kLinesHeight - kLinesTop - kLinesBottom);
  }

 private:
  static void take(const LineChart& chart, double px, double py, Range& x, Range& y) {
    x.take(px);
    // Zero has no place on a logarithmic axis; the note below the chart tells of it.
    if (!chart.y_may_be_logarithmic || py > 0) y.take(py);
  }

  Axis x_;
  Axis y_;
  bool is_empty_ = false;
};

std::string titled(const std::string& title, const Axis& axis) {
  return axis.unit_name.empty() ? title : fmt::format("{} ({})", title, axis.unit_name);
}

std::string draw_axes(const LineChart& chart, const Frame& frame) {
  std::string out = R"(<g class="axis">)";
  const double bottom = kLinesHeight - kLinesBottom;
  for (const Tick& tick : frame.y_axis().ticks) {
    const std::string y = coordinate(frame.y(tick.value));
    out += fmt::format(R"(<path class="grid" d="M{} {}H{}"/>)", kLinesLeft, y, kChartWidth - kLinesRight);
    out += fmt::format(R"(<text x="{}" y="{}" dy=".34em" text-anchor="end">{}</text>)", kLinesLeft - 7, y,
                       escaped(tick.label));
  }
  for (const Tick& tick : frame.x_axis().ticks) {
    const std::string x = coordinate(frame.x(tick.value));
    out += fmt::format(R"(<path class="tick" d="M{} {}v4"/>)", x, bottom);
    out += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", x, bottom + 18, escaped(tick.label));
  }
  out += fmt::format(R"(<path class="base" d="M{} {}H{}"/>)", kLinesLeft, bottom, kChartWidth - kLinesRight);
  out += fmt::format(R"(<text class="name" x="{}" y="{}" text-anchor="middle">{}</text>)",
                     (kLinesLeft + kChartWidth - kLinesRight) / 2, kLinesHeight - 8,
                     escaped(titled(chart.x_title, frame.x_axis())));
  out +=
      fmt::format(R"svg(<text class="name" transform="translate(13 {}) rotate(-90)" text-anchor="middle">{}</text>)svg",
                  coordinate((kLinesTop + bottom) / 2), escaped(titled(chart.y_title, frame.y_axis())));
  return out + "</g>";
}

std::string draw_band(const Series& series, const Frame& frame) {
  if (series.band.size() < 2) return {};
  std::string path;
  for (const Bucket& bucket : series.band) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(frame.x(bucket.x)),
                        coordinate(frame.y(bucket.y.high)));
  }
  for (auto bucket = series.band.rbegin(); bucket != series.band.rend(); ++bucket) {
    path += fmt::format("L{} {}", coordinate(frame.x(bucket->x)), coordinate(frame.y(bucket->y.low)));
  }
  return fmt::format(R"(<path class="band f{}" d="{}Z"/>)", series.style % kStyles, path);
}

std::string draw_series(const LineChart& chart, const Series& series, const Frame& frame) {
  std::string path;
  std::string markers;
  for (const Point& point : series.points) {
    if (frame.y_axis().is_logarithmic && point.y <= 0) continue;
    const double x = frame.x(point.x);
    const double y = frame.y(point.y);
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", coordinate(x), coordinate(y));
    if (chart.markers || series.points.size() == 1) markers += marker(series.style, x, y, series.thin ? 2.6 : 3.4);
  }
  if (path.empty()) return {};
  std::string out = fmt::format(R"(<path class="line {}{}" data-name="{}" d="{}"/>)", style_class(series.style),
                                series.thin ? " thin" : "", escaped(series.name), path);
  if (!markers.empty()) out += fmt::format(R"(<g class="marker f{}">{}</g>)", series.style % kStyles, markers);
  return out;
}

std::string draw_marks(const LineChart& chart, const Frame& frame) {
  std::string out;
  if (chart.level) {
    const double y = frame.y(*chart.level);
    out += fmt::format(R"(<path class="level" d="M{} {}H{}"/>)", kLinesLeft, coordinate(y), kChartWidth - kLinesRight);
    out += fmt::format(R"(<text class="level" x="{}" y="{}">{}</text>)", kLinesLeft + 4,
                       coordinate(y > kLinesTop + 20 ? y - 5 : y + 14), escaped(chart.level_label));
  }
  // Labels that would run into each other are left out: the table below the chart has them all.
  double free_from = -1;
  for (const Mark& mark : chart.marks) {
    const double x = frame.x(mark.x);
    out +=
        fmt::format(R"(<path class="mark" d="M{} {}V{}"/>)", coordinate(x), kLinesTop - 4, kLinesHeight - kLinesBottom);
    const double width = 11 * text_width(mark.label);
    const bool turns = x + 4 + width > kChartWidth - kLinesRight;
    const double begin = turns ? x - 4 - width : x + 4;
    if (begin < free_from) continue;
    out += fmt::format(R"(<text class="mark" x="{}" y="{}"{}>{}</text>)", coordinate(turns ? x - 4 : x + 4),
                       kLinesTop + 6, turns ? R"( text-anchor="end")" : "", escaped(mark.label));
    free_from = begin + width + 8;
  }
  return out;
}

std::string unit_attribute(Unit unit) {
  return unit == Unit::kPercent ? "percent" : unit == Unit::kSeconds ? "seconds" : "plain";
}

// What the script needs to turn places back into values.
std::string read_out_attributes(const Frame& frame, const LineChart& chart) {
  const Axis& x = frame.x_axis();
  const Axis& y = frame.y_axis();
  return fmt::format(R"(data-x="{:.9g} {:.9g} {} {} {}" data-y="{:.9g} {:.9g} {} {} {}{}")", x.low, x.high, kLinesLeft,
                     kChartWidth - kLinesRight, unit_attribute(chart.x_unit), y.low, y.high,
                     kLinesHeight - kLinesBottom, kLinesTop, unit_attribute(chart.y_unit),
                     y.is_logarithmic ? " log" : "");
}

}  // namespace

std::string swatch(int style, bool with_marker) {
  return fmt::format(
      R"(<svg class="swatch" width="30" height="12" viewBox="0 0 30 12" aria-hidden="true"><path class="line {}" d="M1 6H29"/>{}</svg>)",
      style_class(style),
      with_marker ? fmt::format(R"(<g class="marker f{}">{}</g>)", style % kStyles, marker(style, 15, 6, 3.4)) : "");
}

std::string draw(const LineChart& chart) {
  const Frame frame(chart);
  if (frame.is_empty()) return {};
  std::string out =
      fmt::format("<figure class=\"chart\" id=\"{}\">\n<figcaption>{}</figcaption>\n", chart.id, escaped(chart.title));
  if (!chart.legend.empty()) {
    out += R"(<div class="legend">)";
    for (const LegendEntry& entry : chart.legend) {
      out += fmt::format("<span>{}{}</span>", swatch(entry.style, chart.markers), escaped(entry.name));
    }
    out += "</div>\n";
  }
  out += begin_svg({chart.id, chart.title, chart.description, kChartWidth, kLinesHeight,
                    "class=\"lines\" " + read_out_attributes(frame, chart)});
  out += draw_axes(chart, frame);
  for (const Series& series : chart.series) out += draw_band(series, frame);
  for (const Series& series : chart.series) out += draw_series(chart, series, frame);
  out += draw_marks(chart, frame) + "</svg>\n";
  if (!chart.note.empty()) out += "<p class=\"note\">" + chart.note + "</p>\n";
  return out + "</figure>\n";
}

}  // namespace dssync
