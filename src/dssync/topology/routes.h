// Paths through the tree of switches. Pure; thread-safe.
#pragma once

#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// The lowest node that is above, or is, both.
NodeId meeting_point(const Topology& topology, NodeId a, NodeId b);

// The links from one host to another, in the order they are crossed; none within a host.
std::vector<LinkId> route(const Topology& topology, NodeId from_host, NodeId to_host);

// What a node's cable to its parent can carry: the slower direction. REQUIRES: not the root.
Bandwidth cable_capacity(const Topology& topology, NodeId node);

}  // namespace dssync
