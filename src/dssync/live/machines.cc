#include "dssync/live/machines.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {

Machine this_machine(const std::string& address) {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) throw Error("this machine does not tell its name");
  return {name.data(), address};
}

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
