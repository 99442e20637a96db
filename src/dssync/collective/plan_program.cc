#include "dssync/collective/plan_program.h"

#include <algorithm>
#include <utility>

#include "dssync/planner/cost.h"
#include "dssync/planner/stages.h"

namespace dssync {
namespace {

const Group& group_of(const Round& round, Rank rank) {
  return *std::find_if(round.groups.begin(), round.groups.end(), [rank](const Group& group) {
    return std::find(group.begin(), group.end(), rank) != group.end();
  });
}

double seconds_of_slowest_group(const Round& round, const Topology& network, double bytes) {
  double most = 0;
  for (const Group& group : round.groups) {
    most = std::max(most, load_of(lower(group, network, bytes), network, bytes).duration(network).count());
  }
  return most;
}

void number_stages(Chain& chain, const std::vector<std::vector<int>>& numbers) {
  for (std::size_t phase = 0; phase < chain.phases.size(); ++phase) {
    for (std::size_t index = 0; index < chain.phases[phase].size(); ++index) {
      chain.phases[phase][index].stage = numbers[phase][index];
    }
  }
}

}  // namespace

std::shared_ptr<const PlanProgram> make_plan_program(World& world, const Plan& plan, const Topology& network,
                                                     double bytes) {
  check_schedule(plan.rounds, world.size());
  auto program = std::make_shared<PlanProgram>(PlanProgram{plan, ScheduleProgram(plan.rounds, plan.shards),
                                                           StageTable(plan.rounds, plan.shards, network, bytes),
                                                           std::vector<Chain>(plan.rounds.size())});
  ChainBuilder builder(world, network);
  std::vector<std::size_t> rounds;
  for (std::size_t round = 0; round < plan.rounds.size(); ++round) {
    if (program->schedule.canonical(round) != round) continue;
    const Group& group = group_of(plan.rounds[round], world.rank());
    builder.add(lower(group, network, bytes), static_cast<int>(group.size()), static_cast<int>(round),
                seconds_of_slowest_group(plan.rounds[round], network, bytes));
    rounds.push_back(round);
  }
  std::vector<Chain> built = builder.build();
  for (std::size_t index = 0; index < built.size(); ++index) {
    number_stages(built[index], program->stages.numbers_of(rounds[index], world.rank()));
    program->chains[rounds[index]] = std::move(built[index]);
  }
  return program;
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
