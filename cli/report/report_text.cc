#include "report/report_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "dssync/base/units.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

// What the busiest uplink of a switch carried in an iteration, or is predicted to; nothing where there is none.
std::string uplink_text(const RunGroup& group) {
  double most = 0;
  bool is_measured = true;
  for (const LinkLoad& link : group.links) {
    if (!link.name.ends_with(" up") && !link.name.ends_with(" down")) continue;
    const double bytes = link.measured_bytes.value_or(link.predicted_bytes.value_or(0));
    if (bytes <= most) continue;
    most = bytes;
    is_measured = link.measured_bytes.has_value();
  }
  if (most <= 0) return "";
  return format_bytes(most) + (is_measured ? "" : " *");
}

std::string time_text(const RunGroup& group) {
  return group.seconds_to_accuracy.count == 0 ? "never" : fmt::format("{:.1f} s", group.seconds_to_accuracy.mean);
}

std::string accuracy_text(const RunGroup& group) {
  return group.final_accuracy.count == 0 ? "none" : fmt::format("{:.2f} %", 100 * group.final_accuracy.mean);
}

}  // namespace

std::string comparison_as_text(const Comparison& comparison) {
  std::size_t column = 8;
  for (const RunGroup& group : comparison.groups) column = std::max(column, width(printable(group.name)));
  const std::string to = comparison.accuracy ? fmt::format("to {:.1f} %", 100 * *comparison.accuracy) : "to accuracy";
  std::string text = fmt::format("{}  {:>5}  {:>10}  {:>8}  {:>9}  {:>13}  {:>16}\n", pad_right("run", column), "seeds",
                                 to, "speed-up", "accuracy", "per iteration", "busiest uplink");
  for (const RunGroup& group : comparison.groups) {
    text +=
        fmt::format("{}  {:>5}  {:>10}  {:>8}  {:>9}  {:>13}  {:>16}\n", pad_right(printable(group.name), column),
                    group.runs.size(), time_text(group), group.speedup ? fmt::format("{:.2f}x", *group.speedup) : "",
                    accuracy_text(group), format_duration(Seconds(group.iteration_seconds.median)), uplink_text(group));
  }
  return text + "\n" + wrap(conclusion(comparison), "", "") + "\n";
}

}  // namespace dssync::cli
