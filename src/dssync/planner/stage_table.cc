#include "dssync/planner/stage_table.h"

#include <algorithm>

namespace dssync {
namespace {

TableStage measured(Stage stage, const Topology& topology) {
  TableStage result;
  const GroupLoad load = load_of(stage, topology, 1);
  for (const auto& [link, bytes] : load.bytes) {
    if (bytes > 0) result.loads.emplace_back(link, bytes);
  }
  result.latency_seconds = load.latency.count();
  result.members = member_traffic(stage, topology);
  result.stage = std::move(stage);
  return result;
}

}  // namespace

StageTable::StageTable(const Schedule& schedule, int shards, const Topology& network, double bytes,
                       const std::vector<Group>& replicas, const Codecs& codecs)
    : network_(network), replicas_(network, replicas), cycle_(schedule), shards_(shards), bytes_(bytes) {
  for (Rank rank = 0; rank < workers(); ++rank) {
    const Node& host = network_.node(network_.host_at(network_.position_of(rank)));
    cables_.emplace_back(host.up, host.down);
  }
  for (const std::size_t round : cycle_.distinct()) {
    const std::vector<Group>& groups = schedule[round].groups;
    coding_.emplace_back(0);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      add_group(groups[group], static_cast<int>(round), static_cast<int>(group), codecs);
    }
    round_loads_.push_back(load_of_round(round));
  }
}

void StageTable::add_group(const Group& group, int round, int number, const Codecs& codecs) {
  Lowering lowering = lower(group, network_, bytes_, replicas_, codecs);
  coding_.back() = std::max(coding_.back(), load_of(lowering, network_, bytes_ / shards_).coding);
  for (std::size_t phase = 0; phase < lowering.phases.size(); ++phase) {
    for (Stage& stage : lowering.phases[phase]) {
      TableStage& added = stages_.emplace_back(measured(std::move(stage), network_));
      added.round = round;
      added.group = number;
      added.phase = static_cast<int>(phase);
    }
  }
}

std::span<const TableStage> StageTable::stages_of(std::size_t round, std::size_t begin, std::size_t end) const {
  const auto first_at = [&](std::size_t group) {
    return std::partition_point(stages_.begin(), stages_.end(), [&](const TableStage& stage) {
      return std::pair(index(stage.round), index(stage.group)) < std::pair(round, group);
    });
  };
  return {first_at(begin), first_at(end)};
}

RoundLoad StageTable::load_of_round(std::size_t round) const {
  std::vector<double> bytes(network_.links().size(), 0);
  add_loads(round, bytes_ / shards_, bytes);
  RoundLoad load;
  load.bytes = loads_from(bytes);
  load.latency = latency_of(round);
  load.coding = coding_.back();
  return load;
}

// Of its slowest chain. Stages of a phase run side by side, phases follow each other.
Seconds StageTable::latency_of(std::size_t round) const {
  double longest = 0;
  double before = 0;  // of the chain's earlier phases
  double phase = 0;
  const TableStage* previous = nullptr;
  for (const TableStage& stage : stages_of(round)) {
    const bool is_same = previous != nullptr && is_same_chain(*previous, stage);
    const bool is_beside = is_same && previous->phase == stage.phase;
    if (!is_beside) before = is_same ? before + phase : 0;
    phase = is_beside ? std::max(phase, stage.latency_seconds) : stage.latency_seconds;
    longest = std::max(longest, before + phase);
    previous = &stage;
  }
  return Seconds(longest);
}

std::vector<std::vector<int>> StageTable::numbers_of(std::size_t round, std::size_t group) const {
  std::vector<std::vector<int>> numbers;
  for (const TableStage& stage : stages_of(round, group, group + 1)) {
    if (numbers.size() <= index(stage.phase)) numbers.resize(index(stage.phase) + 1);
    numbers[index(stage.phase)].push_back(static_cast<int>(&stage - stages_.data()));
  }
  return numbers;
}

Lowering StageTable::lowering_of(std::size_t round, std::size_t group) const {
  Lowering lowering;
  for (const std::vector<int>& numbers : numbers_of(round, group)) {
    std::vector<Stage>& phase = lowering.phases.emplace_back();
    for (const int number : numbers) phase.push_back(at(number).stage);
  }
  return lowering;
}

double StageTable::share_of(std::size_t round, std::int64_t iteration) const {
  int shards = 0;
  for (int shard = 0; shard < shards_; ++shard) {
    if (cycle_.round_at(iteration, shard) == round) ++shards;
  }
  return static_cast<double>(shards) / shards_;
}

double StageTable::seconds_per_iteration(const Topology& capacities) const {
  return cost_of(cycle_, round_loads_, shards_, capacities).seconds_per_iteration;
}

void StageTable::add_loads(std::size_t round, double volume, std::vector<double>& bytes) const {
  if (volume <= 0) return;
  for (const TableStage& stage : stages_of(round)) {
    for (const auto& [link, load] : stage.loads) bytes[index(link)] += load * volume;
  }
}

}  // namespace dssync
