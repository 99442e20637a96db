// Networks and plans as JSON, the same in all that dssync writes: `plan`, `bench`, training logs. Keys stand in a fixed
// order; docs/command-line.md describes them. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync {

using Json = nlohmann::ordered_json;

Json json_of(const Schedule& schedule);
Json json_of(const Mixing& mixing);
Json json_of(const Cost& cost, const Topology& topology);

// What is followed: shards, rounds and mixing; replicas, where these have several workers.
Json json_of(const Plan& plan);

// Switches and hosts, a parent before its children, with the ranks of the workers on a host.
Json json_of(const Topology& topology);

}  // namespace dssync
