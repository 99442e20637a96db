// A chart of lines as SVG in a <figure>: axes with round ticks, a legend, marks. Colours are classes that the page's
// style defines; the page's script reads values back from the drawn lines. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dssync/report/axis.h"
#include "dssync/report/statistics.h"

namespace dssync {

struct Series {
  std::string name;   // in the read-out under the pointer
  int style = 0;      // colour, dashes and marker
  bool thin = false;  // one of several runs that share a style
  std::vector<Point> points;
  std::vector<Bucket> band;  // drawn as an area from low to high, behind the lines; may be empty
};

struct LegendEntry {
  std::string name;
  int style = 0;
};

// A vertical line.
struct Mark {
  double x = 0;
  std::string label;
};

struct LineChart {
  std::string id;  // unique in the page; letters and dashes
  std::string title;
  std::string description;  // for those who cannot see it
  std::string x_title;
  std::string y_title;
  Unit x_unit = Unit::kPlain;
  Unit y_unit = Unit::kPlain;
  bool y_from_zero = false;
  bool y_may_be_logarithmic = false;
  bool markers = false;
  std::optional<double> y_most;  // what is above is cut off
  std::optional<double> level;   // a horizontal line
  std::string level_label;
  std::vector<LegendEntry> legend;
  std::vector<Series> series;
  std::vector<Mark> marks;
  std::string note;  // below it; HTML
};

// Empty where no series has a point.
std::string draw(const LineChart& chart);

// The line or marker that stands for a style, to be put before a name.
std::string swatch(int style, bool marker);

}  // namespace dssync
