// Who takes part in a run: a plain value, and the place in the store that belongs to it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/launch/run_id.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct Member {
  std::string process;  // what identifies it: "process 4711 on node7"
  std::string address;  // of the interface that carries its traffic
  bool serves_store = false;

  bool operator==(const Member&) const = default;
};

struct Membership {
  RunId run;
  int epoch = 0;                     // which membership of the run this is
  std::vector<Member> members;       // by rank
  std::optional<Topology> topology;  // of the members, once they have agreed on it

  std::optional<Rank> store_server() const;  // nothing: no member serves the store
};

// The part of `store` that belongs to one membership: every key of the run goes through here and carries the run's id
// and the epoch. `world` counts the worlds of one process.
Store store_of(const Store& store, const RunId& run, int epoch, int world = 0);

// What decides how averages run: two workers with different networks would send each other slices of different sizes.
std::vector<std::string> network_lines(const Topology& topology);

}  // namespace dssync
