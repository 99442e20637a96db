#include "dssync/collective/chain.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "dssync/planner/cost.h"

namespace dssync {
namespace {

std::vector<Step> steps_of(const std::vector<Stage>& phase, Rank rank, double seconds_per_byte) {
  std::vector<Step> steps;
  for (const Stage& stage : phase) {
    const auto self = std::find(stage.members.begin(), stage.members.end(), rank);
    if (self == stage.members.end()) continue;
    steps.push_back({stage.kind, stage.members, stage.bounds, static_cast<int>(self - stage.members.begin()), Channel(),
                     seconds_per_byte, -1});
  }
  return steps;
}

// The time of the busiest link for each byte of the vector.
double busiest(const Lowering& lowering, const Topology& topology) {
  GroupLoad load = load_of(lowering, topology, 1);
  load.latency = Seconds(0);
  return load.duration(topology).count();
}

bool reduces(const std::vector<Stage>& phase) {
  return std::any_of(phase.begin(), phase.end(),
                     [](const Stage& stage) { return stage.kind != Stage::Kind::kAllGather; });
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

std::size_t ChainBuilder::add(const Lowering& lowering, int group_size, int round, double urgency) {
  Chain chain;
  chain.group_size = group_size;
  chain.round = round;
  chain.urgency = urgency;
  double most = 0;
  chain.seconds_per_byte = busiest(lowering, topology_);
  for (const std::vector<Stage>& phase : lowering.phases) {
    const double seconds_per_byte = busiest({{phase}}, topology_);
    if (seconds_per_byte > most) chain.slowest = chain.phases.size();
    most = std::max(most, seconds_per_byte);
    chain.phases.push_back(steps_of(phase, world_.rank(), seconds_per_byte));
    if (reduces(phase)) chain.reduced_after = chain.phases.size();
  }
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
      const std::string use = fmt::format("phase {} of {}", phase + 1, chain.phases.size());
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
