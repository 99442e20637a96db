#include "dssync/comm/membership.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

namespace dssync {

std::optional<Rank> Membership::store_server() const {
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].serves_store) return static_cast<Rank>(rank);
  }
  return std::nullopt;
}

Store store_of(const Store& store, const RunId& run, int epoch, int world) {
  return c10::make_intrusive<c10d::PrefixStore>(fmt::format("dssync/{}/{}/{}/{}", run.name, run.attempt, epoch, world),
                                                store);
}

std::vector<std::string> network_lines(const Topology& topology) {
  std::vector<std::string> lines;
  for (int position = 0; position < topology.workers(); ++position) {
    const std::string& host = topology.node(topology.host_at(position)).name;
    lines.push_back(fmt::format("rank {} on {}", topology.rank_at(position), host));
  }
  for (const Link& link : topology.links()) {
    lines.push_back(
        fmt::format("{} {} bytes/s, {} s", link.name, link.capacity.bytes_per_second, link.latency.count()));
  }
  return lines;
}

}  // namespace dssync
