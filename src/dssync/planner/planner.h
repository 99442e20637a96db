// The planner: from a network, a number of bytes and a limit on disagreement to the fastest schedule. Deterministic:
// the same input gives the same plan in every process. docs/planner.md explains the search. Start here.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "dssync/planner/codecs.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/mixing.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"

namespace dssync {

struct Plan {
  Schedule rounds;
  int shards = 1;
  Mixing mixing;
  Cost cost;
  // Workers that average their gradients in every iteration, and so are one replica of the schedule: its groups are
  // unions of these, and its averages take their values as equal. None: every worker is a replica.
  std::vector<Group> replicas{};
  Cost inside{};                  // of averaging the gradients inside of them, in every iteration
  Codecs codecs{};                // that averages of the schedule travel in
  double codec_disagreement = 0;  // what that adds to the schedule's S

  // In line; what overlap adds is not in it.
  double disagreement() const { return mixing.steady_disagreement + codec_disagreement; }

  int replica_count() const;
};

// Not thread-safe: it remembers what it worked out for one limit to answer the next one sooner.
class Planner {
 public:
  // group_limit: the largest group allowed, in replicas; 0 for none. replicas: as in Plan; a plan's S and its costs are
  // those of all workers. codecs: what averages may travel in; gradients inside replicas travel as they are. The
  // topology must outlive the planner.
  // Throws InputError unless bytes > 0, group_limit is 0 or at least 2 (1 is allowed for a single worker), and the
  // replicas are places of the network; and for int8 or int4 where the group limit leaves no round of everyone.
  Planner(const Topology& topology, double bytes, int group_limit = 0, const std::vector<Group>& replicas = {},
          const CodecChoice& codecs = {});
  ~Planner();

  // The fastest plan whose S, with what codecs add, is at most `disagreement`; nothing where the group limit allows no
  // such plan. Throws InputError unless disagreement is a number >= 0.
  std::optional<Plan> best(double disagreement);

  // The same plan, where there must be one: throws InputError that names the smallest limit that works.
  Plan require(double disagreement);

  // The smallest S that the group limit allows (0 without one). best(smallest_disagreement()) is a plan.
  double smallest_disagreement();

  // The published schedule: equal groups shuffled as a grid, one shard. Groups of at most the group limit or, without
  // one, of at most the square root of the number of replicas, rounded up.
  Plan published();

  // This schedule, whatever its S, in the codecs that make it fastest.
  Plan follow(const Schedule& rounds, int shards);

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace dssync
