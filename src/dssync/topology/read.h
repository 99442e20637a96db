// Reads a topology from a file: dssync's YAML (docs/topology.md) or Slurm's topology.conf.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// Rates for hosts and switches of which the file says nothing.
struct Assumptions {
  std::optional<Bandwidth> nic;
  std::optional<Bandwidth> uplink;
};

struct ReadResult {
  Topology topology;
  std::vector<std::string> notes;  // what had to be assumed, a sentence each, for the user to see
};

// Picks the format: ".yaml"/".yml" is YAML, ".conf" is Slurm's, anything else is told by its first meaningful line.
// Throws InputError naming the file, the line where there is one, and what was expected.
ReadResult read_topology(const std::filesystem::path& file, const Assumptions& assumptions = {});

// The same from text; `source` stands for the file's name in messages.
ReadResult read_yaml_topology(std::string_view text, const std::string& source, const Assumptions& assumptions = {});

// Slurm says nothing of NICs, and its LinkSpeed is a number of unstated unit that most files leave out. LinkSpeed is
// taken as the speed of the cable from that switch up to its parent: with a unit as written, without one in Mbit/s (as
// Linux counts the speed of an interface). Where a speed is missing and not in `assumptions`, NICs are taken as 10Gbps
// and an uplink as fast as the links below it together. Each assumption gives one note.
ReadResult read_slurm_topology(std::string_view text, const std::string& source, const Assumptions& assumptions = {});

// "a[0-3]" -> a0 a1 a2 a3; "n[01-03,7]x[1-2]" -> n01x1 ... ; padding is kept. At most `limit` names.
// Throws InputError without a place: the caller adds it.
std::vector<std::string> expand_host_range(std::string_view pattern, std::size_t limit = Topology::kMaxWorkers);

}  // namespace dssync
