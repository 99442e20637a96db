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

// Names by level, from inside hosts outwards; the last stands for all levels beyond.
Json json_of(const Codecs& codecs);

// What is followed: shards, rounds and mixing; replicas, where these have several workers; codecs and what they add to
// S, where values travel in any.
Json json_of(const Plan& plan);

// Switches and hosts, a parent before its children, with the ranks of the workers on a host.
Json json_of(const Topology& topology);

}  // namespace dssync
