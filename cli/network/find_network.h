// `--topology auto`: the workers find out their network, and rank 0 tells it.
#pragma once

#include <string>

#include "dssync/comm/world.h"
#include "dssync/topology/topology.h"
#include "flags/network_flags.h"

namespace dssync::cli {

// Collective. Rank 0 shows how far it is, then the network as a topology file on standard error, and saves it where the
// flags say so. Throws PeerError where a worker is lost, Error where the file cannot be written.
Topology find_network(const std::string& speaker, const NetworkFlags& flags, World& world);

}  // namespace dssync::cli
