#include "network/find_network.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/durable_file.h"
#include "dssync/base/error.h"
#include "dssync/live/discover_network.h"
#include "terminal/live_line.h"

namespace dssync::cli {
namespace {

void save(const std::string& file, const std::string& text, World& world) {
  if (file.empty()) return;
  try {
    write_durably(file, {text}, "the topology");
  } catch (const Error& error) {
    world.report_failure(error.what());
    throw;
  }
}

}  // namespace

Topology find_network(const std::string& speaker, const NetworkFlags& flags, World& world) {
  const LiveLine::Clock::time_point start = LiveLine::Clock::now();
  LiveLine line(standard_error_screen(), start);
  MeasuredNetwork found = discover_network(world, [&](int done, int most) {
    const LiveLine::Clock::time_point now = LiveLine::Clock::now();
    if (!line.is_due(now)) return;
    line.show(fmt::format("{}: discovering the network: matching {} of at most {}", speaker, done, most), now);
  });
  if (world.rank() != 0) return std::move(found.topology);
  line.clear();
  const Seconds taken = LiveLine::Clock::now() - start;
  fmt::print(stderr, "{}: the workers found this network in {:.1f} s:\n{}", speaker, taken.count(), found.file);
  save(flags.save_topology, found.file, world);
  return std::move(found.topology);
}

}  // namespace dssync::cli
