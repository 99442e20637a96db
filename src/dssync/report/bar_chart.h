// Horizontal bars as SVG in a <figure>: parts of a whole, stacked. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "dssync/report/axis.h"

namespace dssync {

struct BarRow {
  std::string name;
  std::vector<double> parts;  // as many as the chart has part names; not negative
  std::string total;          // written behind the bar; escaped
  int style = -1;             // the colour of a series, instead of those of the parts
};

struct BarChart {
  std::string id;
  std::string title;
  std::string description;
  std::string x_title;
  Unit x_unit = Unit::kPlain;
  std::vector<std::string> part_names;
  std::vector<BarRow> rows;
  std::string note;  // HTML
};

// Empty where there are no rows.
std::string draw(const BarChart& chart);

}  // namespace dssync
