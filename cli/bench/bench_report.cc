#include "bench/bench_report.h"

#include <algorithm>

namespace dssync::cli {

Spread spread_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t half = seconds.size() / 2;
  const double median = seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
  return {median, seconds.front(), seconds.back()};
}

double share_of(const MethodFigures& method, const Topology& topology, LinkId link) {
  const double seconds = spread_of(method.seconds).median;
  if (seconds <= 0) return 0;
  return method.bytes[static_cast<std::size_t>(link)] / seconds / topology.link(link).capacity.bytes_per_second;
}

LinkShare busiest_link(const MethodFigures& method, const Topology& topology) {
  LinkShare busiest;
  for (std::size_t index = 0; index < method.bytes.size(); ++index) {
    const double share = share_of(method, topology, static_cast<LinkId>(index));
    if (share > busiest.share) busiest = {static_cast<LinkId>(index), share};
  }
  return busiest;
}

}  // namespace dssync::cli
