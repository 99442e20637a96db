#include "dssync/collective/program/chain.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "dssync/planner/traffic.h"

namespace dssync {
namespace {

// A stage, and its number in the table of a plan; -1 outside of a plan.
struct NumberedStage {
  const Stage* stage;
  int number;
};
using Phase = std::vector<NumberedStage>;

std::vector<Step> steps_of(const Phase& phase, Rank rank, double seconds_per_byte) {
  std::vector<Step> steps;
  for (const auto& [stage, number] : phase) {
    const auto self = std::find(stage->members.begin(), stage->members.end(), rank);
    if (self == stage->members.end()) continue;
    steps.push_back({.kind = stage->kind,
                     .members = stage->members,
                     .bounds = stage->bounds,
                     .index = static_cast<int>(self - stage->members.begin()),
                     .channel = Channel(),
                     .seconds_per_byte = seconds_per_byte,
                     .codec = stage->codec,
                     .stage = number});
  }
  return steps;
}

// The time of the busiest link for each byte of the vector.
double seconds_per_byte_of(const std::vector<Phase>& phases, const Topology& topology) {
  Lowering lowering;
  for (const Phase& phase : phases) {
    std::vector<Stage>& stages = lowering.phases.emplace_back();
    for (const NumberedStage& numbered : phase) stages.push_back(*numbered.stage);
  }
  return load_of(lowering, topology, 1).busiest(topology).count();
}

bool reduces(const Phase& phase) {
  return std::any_of(phase.begin(), phase.end(),
                     [](const NumberedStage& numbered) { return numbered.stage->kind != Stage::Kind::kAllGather; });
}

double most_wire_share(const std::vector<Phase>& phases) {
  double most = 0;
  for (const Phase& phase : phases) {
    for (const NumberedStage& numbered : phase) most = std::max(most, wire_share(numbered.stage->codec));
  }
  return most > 0 ? most : 1;
}

void note_codecs(const std::vector<Phase>& phases, Chain& chain) {
  for (const Phase& phase : phases) {
    for (const NumberedStage& numbered : phase) {
      const auto& [stage, number] = numbered;
      if (stage->codec != Codec::kFloat32) chain.has_codecs = true;
      if (stage->kind == Stage::Kind::kAllGather) chain.result_codec = std::max(chain.result_codec, stage->codec);
    }
  }
}

Chain make_chain(const std::vector<Phase>& phases, Rank rank, const Topology& topology) {
  Chain chain;
  chain.seconds_per_byte = seconds_per_byte_of(phases, topology);
  chain.wire_share = most_wire_share(phases);
  note_codecs(phases, chain);
  double most = 0;
  for (const Phase& phase : phases) {
    const double seconds_per_byte = seconds_per_byte_of({phase}, topology);
    if (seconds_per_byte > most) chain.slowest = chain.phases.size();
    most = std::max(most, seconds_per_byte);
    chain.phases.push_back(steps_of(phase, rank, seconds_per_byte));
    if (reduces(phase)) chain.reduced_after = chain.phases.size();
  }
  return chain;
}

}  // namespace

const char* name_of(Stage::Kind kind) {
  switch (kind) {
    case Stage::Kind::kReduceScatter:
      return "reduce-scatter";
    case Stage::Kind::kAllReduce:
      return "all-reduce";
    case Stage::Kind::kAllGather:
      return "all-gather";
  }
  return "";
}

std::size_t ChainBuilder::add(const Lowering& lowering, int group_size) {
  std::vector<Phase> phases;
  for (const std::vector<Stage>& stages : lowering.phases) {
    Phase& phase = phases.emplace_back();
    for (const Stage& stage : stages) phase.push_back({&stage, -1});
  }
  Chain chain = make_chain(phases, world_.rank(), topology_);
  chain.group_size = group_size;
  chains_.push_back(std::move(chain));
  return chains_.size() - 1;
}

std::size_t ChainBuilder::add(const StageTable& table, std::size_t round, std::size_t group, const Group& members,
                              double urgency) {
  std::vector<Phase> phases;
  for (const std::vector<int>& numbers : table.numbers_of(round, group)) {
    Phase& phase = phases.emplace_back();
    for (const int number : numbers) phase.push_back({&table.at(number).stage, number});
  }
  Chain chain = make_chain(phases, world_.rank(), topology_);
  const Replicas::Weighing weighing = table.replicas().weighing_of(members, world_.rank());
  chain.group_size = weighing.divisor;
  chain.weight = weighing.weight;
  chain.round = static_cast<int>(round);
  chain.urgency = urgency;
  chains_.push_back(std::move(chain));
  return chains_.size() - 1;
}

std::vector<Chain> ChainBuilder::build() {
  // Every phase of every form of chain has process groups of its own: within a group, operations are matched by their
  // order, and the second part of one average must not hold up the first part of the next, nor a long chain a short
  // one.
  std::map<std::pair<std::string, std::vector<Rank>>, std::vector<Step*>> wanted;
  for (Chain& chain : chains_) {
    for (std::size_t phase = 0; phase < chain.phases.size(); ++phase) {
      const std::string use = fmt::format("{}phase {} of {}", purpose_, phase + 1, chain.phases.size());
      for (Step& step : chain.phases[phase]) wanted[{use, step.members}].push_back(&step);
    }
  }
  for (const auto& [key, steps] : wanted) {
    const Channel channel = world_.channel(key.second, key.first);
    for (Step* step : steps) step->channel = channel;
  }
  return std::exchange(chains_, {});
}

}  // namespace dssync
