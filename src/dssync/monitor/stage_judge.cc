#include "dssync/monitor/stage_judge.h"

#include <algorithm>

#include "dssync/base/index.h"

namespace dssync {
namespace {

// Before a stage's overhead is known it must be this much slower than expected to be called slow.
constexpr double kUncalibrated = 2.0;
// The part of a stage's overhead that is in proportion to what its links need: headers. The rest (CPUs, pipelines that
// fill) takes the same time on links that have become slow.
constexpr double kHeaders = 1.05;

double expected(const TableStage& stage, const IterationView& view, const std::vector<double>& capacities) {
  double busiest = 0;
  for (const auto& [link, load] : stage.loads) {
    busiest = std::max(busiest, view.bytes[index(link)] / capacities[index(link)]);
  }
  return busiest + stage.latency_seconds;
}

// As long as that, or as long as the phases before it: a later phase gets its pieces late, and in no common order.
double expected_in_turn(std::size_t number, const StageTable& table, const IterationView& view,
                        const std::vector<double>& capacities) {
  const TableStage& stage = table.stages()[number];
  double longest = expected(stage, view, capacities);
  for (std::size_t i = number; i-- > 0 && is_same_chain(table.stages()[i], stage);) {
    const TableStage& earlier = table.stages()[i];
    if (earlier.phase < stage.phase) longest = std::max(longest, expected(earlier, view, capacities));
  }
  return longest;
}

// What a busy link would have needed of the time that a stage took, if it usually takes `overhead` times `usual`.
double without_overhead(double seconds, double usual, double overhead) {
  if (seconds <= overhead * usual) return seconds / overhead;
  const double headers = std::min(overhead, kHeaders);
  return (seconds - (overhead - headers) * usual) / headers;
}

}  // namespace

std::vector<StageVerdict> StageJudge::judge(const History& history, const std::vector<double>& capacities) const {
  std::vector<StageVerdict> verdicts;
  for (std::size_t stage = 0; stage < overheads_.size(); ++stage) verdicts.push_back(judge(stage, history, capacities));
  return verdicts;
}

StageVerdict StageJudge::judge(std::size_t number, const History& history,
                               const std::vector<double>& capacities) const {
  StageVerdict verdict;
  const TableStage& stage = history.table()->stages()[number];
  const std::vector<const IterationView*> views = history.complete(number);
  verdict.implied.assign(stage.loads.size(), 0);
  // Two of three are enough where something is very slow; one is not.
  if (views.size() * 2 <= history.window() || stage.loads.empty()) return verdict;
  const double overhead = overheads_[number].factor();
  std::vector<double> ratios;
  std::vector<double> seconds;
  std::vector<double> late;
  std::vector<double> needed;
  for (const IterationView* view : views) {
    const double usual = expected_in_turn(number, *history.table(), *view, capacities);
    seconds.push_back(view->stages[number].seconds);
    ratios.push_back(seconds.back() / usual);
    late.push_back(seconds.back() - overhead * usual);
    needed.push_back(without_overhead(seconds.back(), usual, overhead));
  }
  verdict.seen = true;
  verdict.latest = views.front();
  verdict.seconds = median(seconds);
  verdict.excess = median(ratios) / overhead;
  const double limit = overheads_[number].known() ? tolerance_ * overhead : kUncalibrated;
  verdict.slow = median(ratios) > limit && median(late) > slack_seconds_;
  for (std::size_t i = 0; i < stage.loads.size(); ++i) {
    std::vector<double> rates;
    for (std::size_t view = 0; view < views.size(); ++view) {
      rates.push_back(views[view]->bytes[index(stage.loads[i].first)] / needed[view]);
    }
    verdict.implied[i] = median(rates);
  }
  return verdict;
}

void StageJudge::learn(const std::vector<StageVerdict>& verdicts, const StageTable& table,
                       const std::vector<double>& capacities) {
  for (std::size_t stage = 0; stage < verdicts.size(); ++stage) {
    const StageVerdict& verdict = verdicts[stage];
    if (!verdict.seen || verdict.slow) continue;
    const double ratio = verdict.seconds / expected_in_turn(stage, table, *verdict.latest, capacities);
    overheads_[stage].add(ratio);
    overheads_[stage].lower_to(ratio);
  }
}

void StageJudge::doubt(LinkId link, const StageTable& table) {
  for (std::size_t stage = 0; stage < overheads_.size(); ++stage) {
    const LinkLoads& loads = table.stages()[stage].loads;
    const bool uses = std::any_of(loads.begin(), loads.end(), [link](const auto& load) { return load.first == link; });
    if (uses) overheads_[stage].doubt();
  }
}

double StageJudge::usual_seconds(std::size_t stage, const StageTable& table, const IterationView& view,
                                 const std::vector<double>& capacities) const {
  return overheads_[stage].factor() * expected(table.stages()[stage], view, capacities);
}

}  // namespace dssync
