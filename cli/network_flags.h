// The flags of verbs that run workers: on which network, and how they find each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dssync/base/units.h"
#include "dssync/launch/place.h"
#include "dssync/topology/read.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct NetworkFlags {
  std::optional<std::string> topology;  // a file; without one a flat network of `workers`
  int workers = 0;                      // 0: as many as the topology or the launcher says
  Assumptions assumptions;
  bool emulate = false;
  Seconds timeout{60};
  std::uint16_t port = 0;  // of the store, where this process starts the workers; 0: any free one

  // What the network is called in messages and logs.
  std::string source() const { return topology.value_or("--workers"); }
};

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group);

// Reads the network and tells its notes on standard error, once. `place` is empty where this process starts the
// workers. Throws InputError where the flags do not go together.
Topology read_network(const NetworkFlags& flags, const std::optional<Place>& place, const std::string& speaker);

}  // namespace dssync::cli
