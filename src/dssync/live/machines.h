// Where workers run, and which of them are one host of a network that is being discovered. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// Where a worker runs.
struct Machine {
  std::string name;
  std::string address;  // of the interface that carries its traffic: the hosts of a testbed share a name
  bool operator==(const Machine&) const = default;
};

// This one. Throws Error where it does not tell its name.
Machine this_machine(const std::string& address);

struct DiscoveredHost {
  std::string name;
  Rank first = 0;  // its first worker, which measures for all
  int workers = 1;
  bool operator==(const DiscoveredHost&) const = default;
};

// Whether all workers are on one machine.
bool is_one_machine(const std::vector<Machine>& machines);

// By rank in, by first rank out. Neighbours on one machine are a host, for a topology numbers workers host by host.
// Where all workers are on one machine, each is a host: what they have between them is the network. Hosts are called as
// their machines are where these names differ, and otherwise worker0, worker1, ... by their first rank.
std::vector<DiscoveredHost> hosts_on(const std::vector<Machine>& machines);

}  // namespace dssync
