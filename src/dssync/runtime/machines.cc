#include "dssync/runtime/machines.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

namespace dssync {

bool is_one_machine(const std::vector<Machine>& machines) {
  return std::adjacent_find(machines.begin(), machines.end(), std::not_equal_to<>()) == machines.end();
}

std::vector<DiscoveredHost> hosts_on(const std::vector<Machine>& machines) {
  const bool is_one = is_one_machine(machines);
  std::vector<DiscoveredHost> hosts;
  std::set<std::string> names;
  for (std::size_t rank = 0; rank < machines.size(); ++rank) {
    if (rank > 0 && !is_one && machines[rank] == machines[rank - 1]) {
      ++hosts.back().workers;
      continue;
    }
    hosts.push_back({machines[rank].name, static_cast<Rank>(rank), 1});
    names.insert(machines[rank].name);
  }
  if (names.size() == hosts.size()) return hosts;
  for (DiscoveredHost& host : hosts) host.name = fmt::format("worker{}", host.first);
  return hosts;
}

}  // namespace dssync
