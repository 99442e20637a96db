#include "dssync/monitor/stage_table.h"

#include <algorithm>

#include "dssync/planner/cost.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

std::size_t index(int value) { return static_cast<std::size_t>(value); }

// Adds up loads that come in any order.
LinkLoads merged(LinkLoads loads) {
  std::sort(loads.begin(), loads.end());
  LinkLoads result;
  for (const auto& [link, bytes] : loads) {
    if (result.empty() || result.back().first != link) result.emplace_back(link, 0.0);
    result.back().second += bytes;
  }
  return result;
}

// What each member of a stage sends to whom.
class MessageMeter {
 public:
  MessageMeter(const Stage& stage, const Topology& topology)
      : stage_(stage), topology_(topology), members_(stage.members.size()) {}

  std::vector<TableStage::Member> run() {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (stage_.kind == Stage::Kind::kAllReduce) {
        const auto k = static_cast<double>(members_.size());
        send(i, (i + 1) % members_.size(), 2 * (k - 1) / k * slice(0));
        continue;
      }
      for (std::size_t j = 0; j < members_.size(); ++j) {
        if (j != i) send(i, j, slice(stage_.kind == Stage::Kind::kReduceScatter ? j : i));
      }
    }
    for (TableStage::Member& member : members_) {
      member.outgoing = merged(std::move(member.outgoing));
      member.incoming = merged(std::move(member.incoming));
    }
    return std::move(members_);
  }

 private:
  double slice(std::size_t i) const { return stage_.bounds[i + 1] - stage_.bounds[i]; }
  NodeId host_of(std::size_t i) const { return topology_.host_at(topology_.position_of(stage_.members[i])); }

  void send(std::size_t from, std::size_t to, double bytes) {
    members_[from].sent += bytes;
    if (bytes <= 0) return;
    for (const LinkId link : route(topology_, host_of(from), host_of(to))) {
      members_[from].outgoing.emplace_back(link, bytes);
      members_[to].incoming.emplace_back(link, bytes);
    }
  }

  const Stage& stage_;
  const Topology& topology_;
  std::vector<TableStage::Member> members_;
};

TableStage numbered(Stage stage, const Topology& topology) {
  TableStage result;
  const GroupLoad load = load_of(Lowering{{{stage}}}, topology, 1);
  for (const auto& [link, bytes] : load.bytes) {
    if (bytes > 0) result.loads.emplace_back(link, bytes);
  }
  result.latency_seconds = load.latency.count();
  result.members = MessageMeter(stage, topology).run();
  result.stage = std::move(stage);
  return result;
}

}  // namespace

StageTable::StageTable(const Schedule& schedule, int shards, const Topology& lowered_on, double bytes)
    : shards_(shards), workers_(lowered_on.workers()), bytes_(bytes) {
  for (Rank rank = 0; rank < workers_; ++rank) {
    const Node& host = lowered_on.node(lowered_on.host_at(lowered_on.position_of(rank)));
    cables_.emplace_back(host.up, host.down);
  }
  for (std::size_t round = 0; round < schedule.size(); ++round) {
    std::size_t first = 0;
    while (schedule[first].groups != schedule[round].groups) ++first;
    canonical_.push_back(first);
    if (first != round) continue;
    for (std::size_t group = 0; group < schedule[round].groups.size(); ++group) {
      Lowering lowering = lower(schedule[round].groups[group], lowered_on, bytes);
      for (std::size_t phase = 0; phase < lowering.phases.size(); ++phase) {
        for (Stage& stage : lowering.phases[phase]) {
          stages_.push_back(numbered(std::move(stage), lowered_on));
          stages_.back().round = static_cast<int>(round);
          stages_.back().group = static_cast<int>(group);
          stages_.back().phase = static_cast<int>(phase);
        }
      }
    }
  }
}

std::vector<std::vector<int>> StageTable::numbers_of(std::size_t round, Rank rank) const {
  std::vector<std::vector<int>> numbers;
  for (int number = 0; number < size(); ++number) {
    const TableStage& stage = at(number);
    const std::vector<Rank>& members = stage.stage.members;
    if (index(stage.round) != round || std::find(members.begin(), members.end(), rank) == members.end()) continue;
    if (numbers.size() <= index(stage.phase)) numbers.resize(index(stage.phase) + 1);
    numbers[index(stage.phase)].push_back(number);
  }
  return numbers;
}

double StageTable::share_of(std::size_t round, std::int64_t iteration) const {
  const auto length = static_cast<std::int64_t>(canonical_.size());
  int shards = 0;
  for (int shard = 0; shard < shards_; ++shard) {
    if (canonical_[static_cast<std::size_t>((iteration + shard) % length)] == round) ++shards;
  }
  return static_cast<double>(shards) / shards_;
}

double StageTable::latency_of(std::int64_t iteration) const {
  double longest = 0;
  double chain = 0;
  double phase = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const bool new_chain =
        i == 0 || stages_[i].round != stages_[i - 1].round || stages_[i].group != stages_[i - 1].group;
    const bool new_phase = new_chain || stages_[i].phase != stages_[i - 1].phase;
    if (new_phase) chain = (new_chain ? 0 : chain + phase);
    phase = new_phase ? stages_[i].latency_seconds : std::max(phase, stages_[i].latency_seconds);
    if (share_of(index(stages_[i].round), iteration) > 0) longest = std::max(longest, chain + phase);
  }
  return longest;
}

double StageTable::seconds_per_iteration(const Topology& capacities) const {
  const auto length = static_cast<std::int64_t>(canonical_.size());
  const std::int64_t iterations = shards_ % length == 0 ? 1 : length;
  double seconds = 0;
  for (std::int64_t t = 0; t < iterations; ++t) {
    std::vector<double> bytes(capacities.links().size(), 0);
    for (std::size_t round = 0; round < canonical_.size(); ++round)
      add_loads(round, bytes_ * share_of(round, t), bytes);
    double busiest = 0;
    for (std::size_t link = 0; link < bytes.size(); ++link) {
      busiest = std::max(busiest, bytes[link] / capacities.links()[link].capacity.bytes_per_second);
    }
    seconds += busiest + latency_of(t);
  }
  return seconds / static_cast<double>(iterations);
}

void StageTable::add_loads(std::size_t round, double volume, std::vector<double>& bytes) const {
  if (volume <= 0) return;
  for (const TableStage& stage : stages_) {
    if (index(stage.round) != round) continue;
    for (const auto& [link, load] : stage.loads) bytes[index(link)] += load * volume;
  }
}

}  // namespace dssync
