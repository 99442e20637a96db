// `dssync bench` for people: what an iteration takes, and what the links carry.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "bench_report.h"
#include "dssync/base/units.h"
#include "text/numbers.h"

namespace dssync::cli {
namespace {

std::string seconds_text(double seconds) { return format_duration(Seconds(seconds)); }

// The fastest exact method, which others are compared with.
std::optional<double> best_exact(const BenchReport& report) {
  std::optional<double> best;
  for (const MethodFigures& method : report.methods) {
    if (method.method != Method::kBspRing && method.method != Method::kBspHierarchical) continue;
    const double seconds = spread_of(method.seconds).median;
    best = best ? std::min(*best, seconds) : seconds;
  }
  return best;
}

std::string heading(const BenchReport& report, const Topology& topology, const Style& style) {
  const BenchmarkOptions& options = report.options;
  std::string text =
      style.paint(fmt::format("{} on {}, {} averaged", counted(static_cast<std::size_t>(topology.workers()), "worker"),
                              printable(report.source), format_bytes(static_cast<double>(options.bytes))),
                  Tint::kBold);
  if (options.compute.count() > 0) text += fmt::format(", {} of computing", seconds_text(options.compute.count()));
  text += fmt::format("; {} of each method in turn\n", counted(static_cast<std::size_t>(options.repeats), "block"));
  if (!report.emulated) {
    text += "The network is the one that the workers are on: predictions hold only if it is as described.\n";
  }
  return text;
}

std::string table(const BenchReport& report, const Topology& topology, const Style& style) {
  const std::optional<double> exact = best_exact(report);
  std::string text = style.paint(fmt::format("{:<17} {:>12} {:>22} {:>12} {:>7} {:>8}  {}\n", "method", "iteration",
                                             "least to most", "predicted", "ratio", "gain", "busiest link"),
                                 Tint::kDim);
  for (const MethodFigures& method : report.methods) {
    const Spread spread = spread_of(method.seconds);
    const double ratio = method.predicted_seconds > 0 ? spread.median / method.predicted_seconds : 0;
    const LinkShare busiest = busiest_link(method, topology);
    const std::string link =
        busiest.link == kNone ? "" : fmt::format("{} {:.0f} %", topology.link(busiest.link).name, 100 * busiest.share);
    text += fmt::format(
        "{:<17} {:>12} {:>22} {:>12} {:>7} {:>8}  {}\n", name_of(method.method), seconds_text(spread.median),
        fmt::format("{} to {}", seconds_text(spread.least), seconds_text(spread.most)),
        seconds_text(method.predicted_seconds), ratio > 0 ? fmt::format("{:.2f}", ratio) : "",
        exact && spread.median > 0 ? fmt::format("{:.2f}x", *exact / spread.median) : "", printable(link));
  }
  if (exact) text += "gain: against the faster of bsp-ring and bsp-hierarchical\n";
  return text;
}

// Both directions of a cable on one row, for cables that carry enough to matter.
std::string links(const BenchReport& report, const Topology& topology, const Style& style) {
  std::string text = style.paint("\nbytes per iteration over each link (predicted)\n", Tint::kBold);
  std::string header = fmt::format("{:<20}", "link");
  for (const MethodFigures& method : report.methods) header += fmt::format(" {:>24}", name_of(method.method));
  text += style.paint(header + "\n", Tint::kDim);
  for (std::size_t index = 0; index < topology.links().size(); ++index) {
    text += pad_right(clip(printable(topology.links()[index].name), 20, style), 20);
    for (const MethodFigures& method : report.methods) {
      text += fmt::format(" {:>24}", fmt::format("{} ({})", format_bytes(method.bytes[index]),
                                                 format_bytes(method.predicted.links[index].bytes_per_iteration)));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string bench_as_text(const BenchReport& report, const Topology& topology, const Style& style) {
  std::string text = heading(report, topology, style) + "\n" + table(report, topology, style);
  const bool is_counted = !report.methods.empty() && !report.methods.front().bytes.empty();
  constexpr std::size_t kMostLinks = 64;
  if (is_counted && topology.links().size() <= kMostLinks) text += links(report, topology, style);
  return text;
}

}  // namespace dssync::cli
