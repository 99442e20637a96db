// On which network workers run: the file, or a flat network of so many workers.
#pragma once

#include <optional>
#include <string>

#include "dssync/launch/assignment.h"
#include "dssync/topology/read.h"

namespace dssync::cli {

// The speed of the NICs of a flat network of which nothing is said.
inline constexpr Bandwidth kFlatNic{1.25e9};  // 10 Gbit/s

// How many workers there are. `workers` is 0 where it was not given, `place` empty where this process starts the
// workers. Throws InputError where they do not agree, or neither says it.
int workers_of(int workers, const std::optional<Assignment>& place);

// So many hosts with one worker each, on one switch.
Topology flat_network(int workers, Bandwidth nic);

// `file` is empty and `workers` 0 where they were not given, `place` empty where this process starts the workers.
// Throws InputError where they do not agree on the number of workers, or nobody says it.
ReadResult network_of(const std::optional<std::string>& file, int workers, const Assumptions& assumptions,
                      const std::optional<Assignment>& place);

}  // namespace dssync::cli
