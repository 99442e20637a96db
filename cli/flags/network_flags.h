// The flags of verbs that run workers: on which network, and how they find each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dssync/base/units.h"
#include "dssync/launch/assignment.h"
#include "dssync/topology/read.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct NetworkFlags {
  std::optional<std::string> topology;  // a file, or kAuto; without one a flat network of `workers`
  std::string save_topology;            // where to write what the workers found; empty: nowhere
  int workers = 0;                      // 0: as many as the topology or the launcher says
  Assumptions assumptions;
  bool emulate = false;
  std::string emulated;  // a file that the workers are not told of; empty: `topology`
  bool ignore_latency = false;
  std::optional<Seconds> timeout;  // none: see timeout_of() in run_workers.h
  std::uint16_t port = 0;          // of the store, where this process starts the workers; 0: any free one

  static constexpr const char* kAuto = "auto";  // the workers measure it
  bool is_discovered() const { return topology == kAuto; }

  // What the network is called in messages and logs.
  std::string source() const { return topology.value_or("--workers"); }
};

// --ignore-latency
void add_latency_flag(CLI::App& app, bool& ignore);

// The network as it is built with --ignore-latency; tells on standard error what is left out.
Topology drop_latency(const Topology& topology, const std::string& speaker);

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group);

// What is known about the network before the workers start.
struct KnownNetwork {
  int workers = 0;
  std::optional<Topology> topology;  // none: they find out themselves
  std::optional<Topology> emulated;  // to be built for them
};

// Reads the network and tells its notes on standard error, once. `place` is empty where this process starts the
// workers. Throws InputError where the flags do not go together, or what the workers find could not be saved.
KnownNetwork read_network(const NetworkFlags& flags, const std::optional<Assignment>& place,
                          const std::string& speaker);

}  // namespace dssync::cli
