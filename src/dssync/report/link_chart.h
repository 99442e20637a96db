// The load of a group's links, predicted and measured: links that are alike folded to one row, as bars and as a table.
// Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "dssync/report/comparison.h"

namespace dssync {

// Links of one kind and capacity for which the same load was predicted.
struct FoldedLinks {
  std::string label;  // "8 NICs a[0-3], b[0-3], both ways"
  double bytes_per_second = 0;
  std::optional<double> predicted_bytes;
  std::optional<double> predicted_share;
  Figure measured_bytes;  // per iteration, over the links
  Figure measured_share;
};

// The busiest first.
std::vector<FoldedLinks> fold_links(const std::vector<LinkLoad>& links);

// Empty where nothing is known about links.
std::string draw_links(const RunGroup& group, const std::string& id);

}  // namespace dssync
