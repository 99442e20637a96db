// What the engine asks of its surroundings when a channel fails: an error that names who is to blame.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

class World;

// The error to report after something done together with `members` failed with `what`. May take seconds. Called in any
// thread; must not throw.
using Explain = std::function<std::exception_ptr(const std::string& doing, const std::vector<Rank>& members,
                                                 const std::string& what)>;

// PeerErrors of World::explain. `world` must outlive it.
Explain explained_by(World& world);

}  // namespace dssync
