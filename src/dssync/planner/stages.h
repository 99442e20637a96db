// Lowering: how one group's average is carried out on the network. The cost model, the runtime and any simulator
// consume the same stages. Pure functions; thread-safe.
#pragma once

#include <vector>

#include "dssync/codec/codec.h"
#include "dssync/planner/codecs.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/schedule.h"
#include "dssync/topology/topology.h"

namespace dssync {

// A collective over some members of a group on a slice of the vector. Slices are fractions of the vector, in [0, 1].
struct Stage {
  enum class Kind {
    kReduceScatter,  // member i ends with the members' sum of its slice [bounds[i], bounds[i+1]); direct exchange
    kAllReduce,      // all members end with the sum of [bounds[0], bounds[1]); ring in the order of `members`
    kAllGather,      // member i holds [bounds[i], bounds[i+1]); all members end with [bounds.front(), bounds.back()]
  };
  Kind kind = Kind::kAllReduce;
  std::vector<Rank> members;   // in topology order; at least two
  std::vector<double> bounds;  // ascending; slices may be empty
  Codec codec = Codec::kFloat32;
};

// The stages of one average. Phases follow each other; the stages of a phase run side by side. The last one leaves the
// sum on every member (whoever runs it divides by the size of the group).
struct Lowering {
  std::vector<std::vector<Stage>> phases;  // none for a group of one
  // Float32 that a member encodes in a second, or decodes, where stages have codecs.
  double codec_bytes_per_second = kCodecBytesPerSecond;
};

// One ring over the whole group in topology order: every cable is crossed at most once in each direction.
Lowering lower_to_ring(const Group& group, const Topology& topology);

// Reduce-scatter inside each region, from the innermost outwards, all-reduce of each slice across the regions of the
// outermost level that the group spans (as reduce-scatter and all-gather where these are more than two), all-gather
// back inwards. Owners behind slower links own smaller slices, down to none.
Lowering lower_hierarchically(const Group& group, const Topology& topology);

// Across replicas. All workers of a replica have the same values, so there is nothing to reduce inside of one: each
// takes over a slice, the slices are reduced as above, and gathered inside. Leaves the sum over the replicas on every
// member (Replicas::weighing_of says what to make of it). REQUIRES: the group is a union of replicas.
Lowering lower_across(const Group& group, const Topology& topology, const Replicas& replicas);

// A synchronous parameter server, sharded over the members: everybody sends slice i to member i, which sums it up and
// sends it to everybody.
Lowering lower_to_servers(const Group& group, const Topology& topology);

// The same average with its values in these codecs. An all-reduce of three and more in a ring adds up in between, where
// nothing can be encoded: in a codec it becomes a reduce-scatter and an all-gather. Two exchange what they have.
Lowering encoded(Lowering lowering, const Topology& topology, const Codecs& codecs);

// Whether `lower` takes the ring where ring and hierarchy take so long.
inline bool prefers_ring(Seconds ring, Seconds hierarchy) { return ring <= hierarchy * (1 + 1e-9); }

// The cheaper of ring and hierarchy for this many bytes in these codecs; the ring where they cost the same.
Lowering lower(const Group& group, const Topology& topology, double bytes, const Codecs& codecs = {});

// Likewise for a union of replicas; across them where one has several workers.
Lowering lower(const Group& group, const Topology& topology, double bytes, const Replicas& replicas,
               const Codecs& codecs = {});

}  // namespace dssync
