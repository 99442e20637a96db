#include "dssync/collective/program/plan_program.h"

#include <algorithm>
#include <utility>

#include "dssync/planner/traffic.h"

namespace dssync {
namespace {

// Index of the worker's group.
std::size_t group_of(const Round& round, Rank rank) {
  const auto found = std::find_if(round.groups.begin(), round.groups.end(), [rank](const Group& group) {
    return std::find(group.begin(), group.end(), rank) != group.end();
  });
  return static_cast<std::size_t>(found - round.groups.begin());
}

double seconds_of_slowest_group(const StageTable& table, std::size_t round, std::size_t groups) {
  double most = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    const GroupLoad load = load_of(table.lowering_of(round, group), table.network(), table.bytes());
    most = std::max(most, load.duration(table.network()).count());
  }
  return most;
}

}  // namespace

std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan,
                                                     std::shared_ptr<const StageTable> table) {
  auto program = std::make_shared<PlanProgram>(PlanProgram{.plan = plan,
                                                           .schedule = ScheduleProgram(plan.rounds, plan.shards),
                                                           .table = std::move(table),
                                                           .chains = std::vector<Chain>(plan.rounds.size())});
  const StageTable& stages = *program->table;
  const std::vector<std::size_t>& rounds = stages.cycle().distinct();
  ChainBuilder builder(world, stages.network());
  for (const std::size_t round : rounds) {
    const std::vector<Group>& groups = plan.rounds[round].groups;
    const std::size_t own = group_of(plan.rounds[round], world.rank());
    builder.add(stages, round, own, groups[own], seconds_of_slowest_group(stages, round, groups.size()));
  }
  std::vector<Chain> built = builder.build();
  for (std::size_t i = 0; i < built.size(); ++i) program->chains[rounds[i]] = std::move(built[i]);
  return program;
}

std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan, const Topology& network,
                                                     double bytes) {
  check_schedule(plan.rounds, world.size());
  return make_plan_program(
      world, plan, std::make_shared<StageTable>(plan.rounds, plan.shards, network, bytes, plan.replicas, plan.codecs));
}

std::vector<Channel> channels_of(const Chain& chain) {
  std::vector<Channel> channels;
  for (const std::vector<Step>& phase : chain.phases) {
    for (const Step& step : phase) {
      if (std::find(channels.begin(), channels.end(), step.channel) == channels.end()) channels.push_back(step.channel);
    }
  }
  return channels;
}

}  // namespace dssync
