// `dssync bench` for people: what an iteration takes, and what the links carry.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_report.h"
#include "dssync/base/units.h"
#include "text/numbers.h"

namespace dssync::cli {
namespace {

// The fastest exact method, which others are compared with.
std::optional<double> best_exact(const BenchReport& report) {
  std::optional<double> best;
  for (const MethodFigures& method : report.methods) {
    if (method.method.method != Method::kBspRing && method.method.method != Method::kBspHierarchical) continue;
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

// Where the CPUs were what everyone waited for.
std::string busy_note(const BenchReport& report) {
  constexpr double kBusy = 0.9;
  std::string methods;
  for (const MethodFigures& method : report.methods) {
    if (method.cpu_share < kBusy) continue;
    methods +=
        fmt::format("{}{} ({:.0f} %)", methods.empty() ? "" : ", ", name_of(method.method), 100 * method.cpu_share);
  }
  if (methods.empty()) return {};
  return fmt::format("The CPUs were busy during {}: these times say little of the network.\n", methods);
}

// The links that any method uses most, at most so many, in their order.
std::vector<std::size_t> busiest_links(const BenchReport& report, const Topology& topology, std::size_t most) {
  std::vector<std::pair<double, std::size_t>> links;
  for (std::size_t index = 0; index < topology.links().size(); ++index) {
    double share = 0;
    for (const MethodFigures& method : report.methods) {
      share = std::max(share, share_of(method, topology, static_cast<LinkId>(index)));
    }
    links.emplace_back(-share, index);
  }
  std::sort(links.begin(), links.end());
  links.resize(std::min(links.size(), most));
  std::vector<std::size_t> chosen;
  for (const auto& [share, index] : links) chosen.push_back(index);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string links(const BenchReport& report, const Topology& topology, const Style& style) {
  constexpr std::size_t kMostLinks = 64;
  std::string text = style.paint("\nbytes per iteration over each link (predicted)\n", Tint::kBold);
  std::string header = fmt::format("{:<20}", "link");
  for (const MethodFigures& method : report.methods) header += fmt::format(" {:>24}", name_of(method.method));
  text += style.paint(header + "\n", Tint::kDim);
  for (const std::size_t index : busiest_links(report, topology, kMostLinks)) {
    text += pad_right(clip(printable(topology.links()[index].name), 20, style), 20);
    for (const MethodFigures& method : report.methods) {
      text += fmt::format(" {:>24}", fmt::format("{} ({})", format_bytes(method.bytes[index]),
                                                 format_bytes(method.predicted.links[index].bytes_per_iteration)));
    }
    text += "\n";
  }
  if (topology.links().size() > kMostLinks) {
    text +=
        fmt::format("and {} less busy; --format json has all\n", counted(topology.links().size() - kMostLinks, "link"));
  }
  return text;
}

}  // namespace

std::string bench_as_text(const BenchReport& report, const Topology& topology, const Style& style) {
  std::string text = heading(report, topology, style) + "\n" + table(report, topology, style) + busy_note(report);
  const bool is_counted = !report.methods.empty() && !report.methods.front().bytes.empty();
  if (is_counted) text += links(report, topology, style);
  return text;
}

}  // namespace dssync::cli
