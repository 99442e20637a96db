// The flags of verbs that run workers: on which network, and how they find each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dssync/base/units.h"
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
  std::optional<Seconds> timeout;  // none: see timeout_of() in network/run_workers.h
  std::uint16_t port = 0;          // of the store, where this process starts the workers; 0: any free one

  static constexpr const char* kAuto = "auto";  // the workers measure it
  bool is_discovered() const { return topology == kAuto; }

  // What the network is called in messages and logs.
  std::string source() const { return topology.value_or("--workers"); }
};

// --ignore-latency
void add_latency_flag(CLI::App& app, bool& ignore);

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group);

}  // namespace dssync::cli
