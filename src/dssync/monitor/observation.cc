#include "dssync/monitor/observation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "dssync/base/index.h"
#include "dssync/monitor/raise.h"

namespace dssync {
namespace {

constexpr double kBuffered = 256e3;  // bytes that a connection may hold back

bool positive(double value) { return value > 0 && std::isfinite(value); }
bool not_negative(double value) { return value >= 0 && std::isfinite(value); }

// Sorted, of those that `key` calls the same only the first.
template <typename Sample, typename Bad, typename Key>
void tidy(std::vector<Sample>& samples, Bad bad, Key key) {
  samples.erase(std::remove_if(samples.begin(), samples.end(), bad), samples.end());
  std::sort(samples.begin(), samples.end());
  const auto same = [key](const Sample& a, const Sample& b) { return key(a) == key(b); };
  samples.erase(std::unique(samples.begin(), samples.end(), same), samples.end());
}

class Observer {
 public:
  Observer(const StageTable& table, std::int64_t iteration, std::size_t links)
      : table_(table), seconds_(index(table.size())) {
    view_.iteration = iteration;
    view_.stages.resize(index(table.size()));
    view_.bytes.resize(links, 0);
    view_.proven.resize(links, 0);
    view_.counted.resize(links);
  }

  IterationView run(const SampleBatch& batch) {
    take(batch.stages);
    measure_volumes(batch.stages);
    for (std::size_t stage = 0; stage < seconds_.size(); ++stage) judge(stage);
    for (std::size_t stage = 0; stage < seconds_.size();) stage = prove_together(stage);
    take(batch.workers);
    return std::move(view_);
  }

 private:
  const TableStage& stage_at(std::size_t stage) const { return table_.stages()[stage]; }
  double volume_of(std::size_t stage) const { return view_.volumes[index(stage_at(stage).round)]; }

  // The member's index in its stage, or -1.
  int member_of(const StageSample& sample) const {
    if (sample.stage < 0 || sample.stage >= table_.size()) return kNone;
    const std::vector<Rank>& members = table_.at(sample.stage).stage.members;
    const auto found = std::find(members.begin(), members.end(), sample.rank);
    return found == members.end() ? kNone : static_cast<int>(found - members.begin());
  }

  void take(const std::vector<StageSample>& samples) {
    for (std::size_t stage = 0; stage < seconds_.size(); ++stage) {
      seconds_[stage].assign(stage_at(stage).members.size(), 0);
    }
    for (const StageSample& sample : samples) {
      const int member = member_of(sample);
      if (member != kNone) seconds_[index(sample.stage)][index(member)] = sample.seconds;
    }
  }

  // All groups of a round average the same slices; who knows how much it sent knows how long they were.
  void measure_volumes(const std::vector<StageSample>& samples) {
    std::vector<std::vector<double>> volumes(table_.rounds());
    for (const StageSample& sample : samples) {
      const int member = member_of(sample);
      if (member == kNone) continue;
      const double sent = table_.at(sample.stage).members[index(member)].sent;
      if (sent > 0 && sample.bytes > 0) {
        volumes[index(table_.at(sample.stage).round)].push_back(sample.bytes / sent);
      }
    }
    for (std::size_t round = 0; round < volumes.size(); ++round) {
      const double planned = table_.bytes() * table_.share_of(round, view_.iteration);
      view_.volumes.push_back(volumes[round].empty() ? planned : median(volumes[round]));
      table_.add_loads(round, view_.volumes.back(), view_.bytes);
    }
  }

  void judge(std::size_t number) {
    const std::vector<double>& seconds = seconds_[number];
    StageView& stage = view_.stages[number];
    stage.complete = true;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      if (seconds[i] <= 0) {
        stage.complete = false;
        continue;
      }
      stage.seconds = stage.seconds > 0 ? std::min(stage.seconds, seconds[i]) : seconds[i];
      prove(stage_at(number).members[i].incoming, volume_of(number), 0, seconds[i]);
      prove(stage_at(number).members[i].outgoing, volume_of(number), kBuffered * peers_of(stage_at(number)),
            seconds[i]);
    }
  }

  // What was received has come. Of what was sent, some may still wait in this host when the member's part is done.
  void prove(const LinkLoads& loads, double volume, double waiting, double seconds) {
    for (const auto& [link, load] : loads) raise(view_.proven[index(link)], (load * volume - waiting) / seconds);
  }

  // To which a member sends.
  static double peers_of(const TableStage& stage) {
    return stage.stage.kind == Stage::Kind::kAllReduce ? 1 : static_cast<double>(stage.members.size() - 1);
  }

  // Stages of one phase start together, when the phase before has ended at all their members: what they put on a link
  // together went through in the longest time that any member saw. Returns the first stage of the next phase.
  std::size_t prove_together(std::size_t first) {
    const TableStage& front = stage_at(first);
    std::vector<double> loads(view_.bytes.size(), 0);
    double longest = 0;
    bool complete = true;
    std::size_t stage = first;
    for (; stage < seconds_.size() && is_same_chain(stage_at(stage), front) && stage_at(stage).phase == front.phase;
         ++stage) {
      complete = complete && view_.stages[stage].complete;
      raise(longest, *std::max_element(seconds_[stage].begin(), seconds_[stage].end()));
      for (const auto& [link, load] : stage_at(stage).loads) loads[index(link)] += load * volume_of(stage);
    }
    if (complete) {
      for (std::size_t link = 0; link < loads.size(); ++link) raise(view_.proven[link], loads[link] / longest);
    }
    return stage;
  }

  void take(const std::vector<WorkerSample>& workers) {
    for (const WorkerSample& sample : workers) {
      if (sample.rank < 0 || sample.rank >= table_.workers()) continue;
      raise(view_.compute_seconds, sample.compute_seconds);
      const auto [out, in] = table_.cable_of(sample.rank);
      count(out, sample.counted_out, sample.counted_seconds);
      count(in, sample.counted_in, sample.counted_seconds);
      if (sample.sync_seconds <= 0) continue;
      const bool first = view_.sync_seconds <= 0;
      view_.sync_seconds = first ? sample.sync_seconds : std::min(view_.sync_seconds, sample.sync_seconds);
    }
  }

  // Of several workers on a host, whose iterations do not end at the same time, the one that counted least.
  void count(LinkId link, double bytes, double seconds) {
    if (link == kNone || seconds <= 0) return;
    CountedBytes& counted = view_.counted[index(link)];
    if (counted.seconds <= 0 || bytes / seconds < counted.bytes / counted.seconds) counted = {bytes, seconds};
  }

  const StageTable& table_;
  std::vector<std::vector<double>> seconds_;  // by stage and member; 0: not reported
  IterationView view_;
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

SampleBatch sane(SampleBatch batch) {
  tidy(
      batch.stages,
      [](const StageSample& s) { return s.iteration < 0 || !not_negative(s.bytes) || !positive(s.seconds); },
      [](const StageSample& s) { return std::tuple(s.iteration, s.stage, s.rank); });
  tidy(
      batch.workers,
      [](const WorkerSample& s) {
        return s.iteration < 0 || !not_negative(s.compute_seconds) || !not_negative(s.sync_seconds) ||
               !not_negative(s.counted_seconds) || !not_negative(s.counted_out) || !not_negative(s.counted_in);
      },
      [](const WorkerSample& s) { return std::tuple(s.iteration, s.rank); });
  tidy(
      batch.probes, [](const ProbeSample& s) { return s.iteration < 0 || !positive(s.bytes) || !positive(s.seconds); },
      [](const ProbeSample& s) { return s; });
  return batch;
}

std::vector<SampleBatch> by_iteration(const SampleBatch& batch) {
  std::map<std::int64_t, SampleBatch> parts;
  for (const StageSample& sample : batch.stages) parts[sample.iteration].stages.push_back(sample);
  for (const WorkerSample& sample : batch.workers) parts[sample.iteration].workers.push_back(sample);
  std::vector<SampleBatch> result;
  for (auto& [iteration, part] : parts) result.push_back(std::move(part));
  if (result.empty()) result.emplace_back();
  result.back().probes = batch.probes;
  return result;
}

IterationView observe(const StageTable& table, std::int64_t iteration, const SampleBatch& batch, std::size_t links) {
  return Observer(table, iteration, links).run(batch);
}

}  // namespace dssync
