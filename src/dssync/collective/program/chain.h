// A group's average as one worker carries it out: the stages of its lowering in which it takes part, with the process
// groups they run in. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/comm/world.h"
#include "dssync/planner/stage_table.h"
#include "dssync/planner/stages.h"

namespace dssync {

// "reduce-scatter", "all-reduce", "all-gather".
const char* name_of(Stage::Kind kind);

// One stage, seen from one of its members.
struct Step {
  Stage::Kind kind = Stage::Kind::kAllReduce;
  std::vector<Rank> members;
  std::vector<double> bounds;  // as in Stage
  int index = 0;               // of this worker in `members`
  Channel channel;
  double seconds_per_byte = 0;  // of the vector, that the busiest link needs for this step and those beside it
  Codec codec = Codec::kFloat32;
  int stage = -1;  // its number in the StageTable of the plan; -1 outside of a plan
};

// Steps of one phase run side by side; a phase starts when the one before it is done.
struct Chain {
  std::vector<std::vector<Step>> phases;
  std::size_t reduced_after = 0;  // phases after which this worker holds complete sums, to be divided
  int group_size = 1;             // by this: the number of members or, across replicas, what these weigh together
  int weight = 1;                 // of this worker's values in the sums
  int round = -1;                 // for the timeline; -1 outside of the schedule
  double seconds_per_byte = 0;    // that the busiest link needs for all phases together
  double wire_share = 1;          // bytes on the wire for each of a vector, in the stage that sends the most
  std::size_t slowest = 0;        // phase
  double urgency = 0;             // the more, the sooner its stages start; the same number on all workers
  // Of all members' stages: whether some codec is not float32, and the shortest one of gathers, which all of them use.
  bool has_codecs = false;
  Codec result_codec = Codec::kFloat32;

  bool empty() const { return phases.empty(); }
};

// Collects the chains that a worker needs, and then makes their process groups in an order that is the same for all
// workers: whoever connects first waits for the others.
class ChainBuilder {
 public:
  // World and topology must outlive it. Chains of another purpose have process groups of their own, so that neither
  // waits for the other.
  ChainBuilder(World& world, const Topology& topology, std::string purpose = "")
      : world_(world), topology_(topology), purpose_(std::move(purpose)) {}

  // The number by which build() returns this worker's part; a group of one gives an empty chain.
  std::size_t add(const Lowering& lowering, int group_size);

  // A group of a (canonical) round of a plan. REQUIRES: this worker is a member; the table is of `topology`.
  std::size_t add(const StageTable& table, std::size_t round, std::size_t group, const Group& members, double urgency);

  // Collective. Throws PeerError where a member doesn't come.
  std::vector<Chain> build();

 private:
  World& world_;
  const Topology& topology_;
  const std::string purpose_;
  std::vector<Chain> chains_;
};

}  // namespace dssync
