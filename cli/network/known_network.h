// On which network workers run, as far as it is known before they start: a file, a flat network of so many workers, or
// nothing yet but their number.
#pragma once

#include <optional>
#include <string>

#include "dssync/launch/assignment.h"
#include "dssync/topology/read.h"
#include "flags/network_flags.h"

namespace dssync::cli {

struct KnownNetwork {
  int workers = 0;
  std::optional<Topology> topology;  // none: they find out themselves
  std::optional<Topology> emulated;  // to be built for them
};

// Reads the network and tells its notes on standard error, once. `assignment` is empty where this process starts the
// workers. Throws InputError where the flags do not go together, or what the workers find could not be saved.
KnownNetwork read_network(const NetworkFlags& flags, const std::optional<Assignment>& assignment,
                          const std::string& speaker);

// The speed of the NICs of a flat network of which nothing is said.
inline constexpr Bandwidth kFlatNic{1.25e9};  // 10 Gbit/s

// How many workers there are. `workers` is 0 where it was not given, `assignment` empty where this process starts the
// workers. Throws InputError where they do not agree, or neither says it.
int workers_of(int workers, const std::optional<Assignment>& assignment);

// So many hosts with one worker each, on one switch.
Topology flat_network(int workers, Bandwidth nic);

// `file` is empty and `workers` 0 where they were not given, `assignment` empty where this process starts the workers.
// Throws InputError where they do not agree on the number of workers, or nobody says it.
ReadResult network_of(const std::optional<std::string>& file, int workers, const Assumptions& assumptions,
                      const std::optional<Assignment>& assignment);

// The network as it is built with --ignore-latency; tells on standard error what is left out.
Topology drop_latency(const Topology& topology, const std::string& speaker);

}  // namespace dssync::cli
