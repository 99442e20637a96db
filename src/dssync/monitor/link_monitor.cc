#include "dssync/monitor/link_monitor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/index.h"
#include "dssync/monitor/blame.h"
#include "dssync/monitor/cables.h"
#include "dssync/monitor/history.h"
#include "dssync/monitor/observation.h"
#include "dssync/monitor/probe_result.h"
#include "dssync/monitor/stage_judge.h"

namespace dssync {
namespace {

// A correction that is smaller leaves an estimate as it is: plans should not follow noise.
constexpr double kLeastCorrection = 1.1;
// A suspect of which so much more was proven is none.
constexpr double kCleared = 1.5;
// Where probes have left several suspects for so many windows, the likely ones remain.
constexpr std::int64_t kProbePatience = 4;
// A suspect through which probes brought so much more of its capacity than through another is not likely.
constexpr double kDistinct = 1.1;
// After one has turned out to be faster, slow links are probed for so many windows: probes that meet other traffic find
// less than there is.
constexpr std::int64_t kRecovery = 2;
// A slow link that turned out to have more than this part of its nominal capacity has all of it: a proof is the least.
constexpr double kRecovered = 0.6;
// A link that was slow in the last so many windows is watched: a plan that spares it would not show that it is slow
// again.
constexpr std::int64_t kWatch = 64;
// What stages prove of it then is less than this part of its capacity ...
constexpr double kSpared = 0.5;
// ... they take only so many times as long as usual ...
constexpr double kHint = 1.1;
// ... and a probe shows it that brings so many times less than it should, and hardly more than when the link was slow:
// busy hosts hold up small probes.
constexpr double kSlowProbe = 3;
constexpr double kAsSlow = 1.2;
// What was heard so many windows ago is still true.
constexpr std::int64_t kFresh = 4;

}  // namespace

class LinkMonitor::State {
 public:
  State(const Topology& topology, const MonitorOptions& settings)
      : nominal(topology),
        history(topology.links().size(), index(settings.window), settings.forget_iterations),
        options_(settings),
        cables_(topology),
        judge_(settings.tolerance, settings.slack_seconds) {
    for (const Link& link : nominal.links()) {
      LinkState state;
      state.nominal = state.capacity = state.high = link.capacity.bytes_per_second;
      links_.push_back(state);
    }
    publish();
  }

  void add(const SampleBatch& raw) {
    const std::vector<LinkState> before = links_;
    for (LinkState& link : links_) link.reason.clear();
    const SampleBatch batch = sane(raw);
    const std::shared_ptr<const StageTable> previous = history.table();
    history.add(batch);
    if (history.table() != previous) {
      judge_.start(index(history.table()->size()));
      verdicts_.clear();
    }
    take_probes(batch.probes);
    if (!history.empty()) {
      prove();
      count_others();
      verdicts_ = judge_.judge(history, capacities());
      blame();
      verdicts_ = judge_.judge(history, capacities());
      follow_slow_links();
      judge_.learn(verdicts_, table(), capacities());
    }
    grow_unheard();
    restore_recovered_links();
    end_decided_suspicions();
    stop_waiting_for_probes();
    report(before);
  }

  std::vector<LinkId> links_to_probe() const {
    std::vector<std::pair<double, LinkId>> doubtful;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      const LinkState& state = links_[link];
      const bool is_doubtful = state.suspects != 0 || !recently(state.heard) || is_recovering(state);
      if ((state.slow() && is_doubtful) || is_watched(state)) {
        doubtful.emplace_back(-high_of(state) / state.capacity, static_cast<LinkId>(link));
      }
    }
    std::sort(doubtful.begin(), doubtful.end());
    std::vector<LinkId> result;
    for (const auto& [doubt, link] : doubtful) result.push_back(link);
    return result;
  }

  // Suspects that a probe could tell apart, and not for long.
  bool undecided() const {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      for (std::size_t other = 0; other < link; ++other) {
        if (links_[link].suspects != 0 && links_[link].suspects == links_[other].suspects &&
            !cables_.in_series(static_cast<LinkId>(link), static_cast<LinkId>(other))) {
          return true;
        }
      }
    }
    return false;
  }

  bool recovering() const {
    return std::any_of(links_.begin(), links_.end(), [this](const LinkState& link) { return is_recovering(link); });
  }

  bool relapsing() const {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      const LinkState& state = links_[link];
      if (is_watched(state) && !was_probed_lately(state) && takes_longer(static_cast<LinkId>(link))) return true;
    }
    return false;
  }

  // By link.
  std::vector<Bandwidth> likely() const {
    std::vector<Bandwidth> capacities;
    for (LinkId link = 0; link < static_cast<LinkId>(links_.size()); ++link) {
      const LinkState& state = links_[index(link)];
      const bool guessed = state.suspects == 0 || is_likely(link);
      capacities.push_back({guessed ? state.capacity : std::max(state.capacity, state.before)});
    }
    return capacities;
  }

  Topology assumed() const {
    std::vector<Bandwidth> bandwidths;
    for (const LinkState& link : links_) bandwidths.push_back({link.capacity});
    return nominal.with_capacities(bandwidths);
  }

  const Topology nominal;
  History history;
  std::vector<LinkEstimate> estimates;
  std::vector<LinkFinding> findings;

 private:
  struct LinkState {
    double nominal = 0;
    double capacity = 0;
    double high = 0;
    double proven = 0;  // lately, by stages and probes
    double seen = 0;    // of that, by stages
    double others = 0;  // what others put on it lately
    double probed = 0;  // by the last probe
    std::int64_t probed_at = -1;
    std::int64_t slow_since = -1;
    std::int64_t slow_until = -1;  // the last iteration in which it was slow beyond doubt; -1: never
    double when_slow = 0;          // the least that it had since it became slow last
    std::int64_t heard = -1;
    int suspects = 0;  // group of links that could not be told apart; 0: none
    std::int64_t suspected_since = -1;
    double before = 0;       // it was suspected
    bool accused = false;    // a probe that crosses it was as slow as it is said to be
    double most_probed = 0;  // since it is suspected
    int probes = 0;          // likewise
    std::string reason;

    bool slow() const { return slow_since >= 0; }
  };

  std::vector<double> capacities() const {
    std::vector<double> result;
    for (const LinkState& link : links_) result.push_back(link.capacity);
    return result;
  }

  std::vector<double> capacities_without_slow_links() const {
    std::vector<double> result;
    for (const LinkState& link : links_) result.push_back(link.slow() ? INFINITY : link.capacity);
    return result;
  }

  bool recently(std::int64_t iteration) const {
    return iteration >= 0 && now() - iteration <= kFresh * options_.window;
  }

  // What has ended for one slow link has often ended for the others, too.
  bool is_recovering(const LinkState& link) const {
    return link.slow() && raised_at_ >= 0 && now() - raised_at_ < kRecovery * options_.window;
  }

  // Whether a stage that crosses it does, a little.
  bool takes_longer(LinkId link) const {
    for (std::size_t number = 0; number < verdicts_.size(); ++number) {
      if (!verdicts_[number].seen || verdicts_[number].excess < kHint) continue;
      const LinkLoads& loads = table().stages()[number].loads;
      if (std::any_of(loads.begin(), loads.end(), [link](const auto& load) { return load.first == link; })) return true;
    }
    return false;
  }

  bool was_probed_lately(const LinkState& link) const {
    return link.probed_at >= 0 && now() - link.probed_at <= kRecovery * options_.window;
  }

  bool is_watched(const LinkState& link) const {
    return link.suspects == 0 && link.slow_until >= 0 && now() - link.slow_until <= kWatch * options_.window &&
           link.seen < kSpared * link.capacity;
  }

  double high_of(const LinkState& link) const { return recently(link.heard) ? link.high : link.nominal; }

  void take_probes(const std::vector<ProbeSample>& probes) {
    for (std::size_t first = 0; first < probes.size();) {
      std::size_t end = first;
      while (end < probes.size() && probes[end].iteration == probes[first].iteration) ++end;
      const std::vector<ProbeSample> together(probes.begin() + static_cast<std::ptrdiff_t>(first),
                                              probes.begin() + static_cast<std::ptrdiff_t>(end));
      const std::vector<double> proven = proven_by_probes(together, nominal);
      for (std::size_t link = 0; link < links_.size(); ++link) {
        if (proven[link] <= 0) continue;
        links_[link].probed = proven[link];
        links_[link].probed_at = probes[first].iteration;
        links_[link].most_probed = std::max(links_[link].most_probed, proven[link]);
        ++links_[link].probes;
      }
      watch(together);
      first = end;
    }
  }

  // A slow transfer tells of a watched link where nothing else on its path is in doubt, and stages take longer, too: it
  // may have met other traffic.
  void watch(const std::vector<ProbeSample>& probes) {
    for (const SlowTransfer& transfer : slow_transfers(probes, assumed(), kSlowProbe)) {
      std::vector<SlowTransfer::Crossing> doubtful;
      for (const SlowTransfer::Crossing& crossing : transfer.path) {
        const LinkState& state = links_[index(crossing.link)];
        if (state.suspects != 0 || is_watched(state)) doubtful.push_back(crossing);
      }
      const bool clear = std::all_of(doubtful.begin(), doubtful.end(), [&](const SlowTransfer::Crossing& crossing) {
        const LinkState& state = links_[index(crossing.link)];
        return state.suspects == 0 && crossing.capacity < kAsSlow * state.when_slow && takes_longer(crossing.link) &&
               cables_.in_series(crossing.link, doubtful.front().link);
      });
      if (!clear) continue;
      for (const auto& [link, capacity] : doubtful) find_slow_again(links_[index(link)], capacity);
    }
  }

  void find_slow_again(LinkState& state, double capacity) const {
    state.capacity = std::max(state.seen, capacity);
    if (!state.slow()) state.slow_since = now();
    state.reason = fmt::format("a probe brought only {} through it", text_of(capacity));
    hear(state, state.capacity, now());
  }

  // ---- What is proven: no stage has to be slow for that.

  void prove() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      const std::vector<double> values =
          history.latest(window(), [link](const IterationView& view) { return view.proven[link]; });
      LinkState& state = links_[link];
      state.proven = state.seen = values.size() < window() ? 0 : median(values);
      // Through a link that others fill, a small probe slips now and then.
      const bool is_others = state.slow() && is_taken(facts_of(state), state.capacity);
      const bool fresh = !is_others && state.probed_at >= 0 && now() - state.probed_at <= options_.window;
      if (fresh) state.proven = std::max(state.proven, state.probed);
      if (fresh && state.slow() && state.probed < kLeastCorrection * state.capacity) {
        state.accused = true;
        hear(state, state.capacity, state.probed_at);
      }
      if (!state.slow() || state.proven < kLeastCorrection * state.capacity) continue;
      // One of several has become that slow, and it isn't this one.
      if (state.suspects != 0 && state.proven > kCleared * state.capacity) {
        acquit(state, fmt::format("{} went through it", text_of(state.proven)));
        continue;
      }
      const bool has_recovered = state.proven > kRecovered * state.nominal;
      show_faster(static_cast<LinkId>(link), has_recovered ? state.nominal : state.proven,
                  fmt::format("{} went through it", text_of(state.proven)));
    }
  }

  static std::string text_of(double rate) { return format_bandwidth({rate}); }

  std::size_t window() const { return history.window(); }
  std::int64_t now() const { return history.last_iteration(); }
  const StageTable& table() const { return *history.table(); }

  static void hear(LinkState& link, double high, std::int64_t iteration) {
    link.heard = std::max(link.heard, iteration);
    link.high = std::clamp(high, link.capacity, link.nominal);
  }

  void show_faster(LinkId link, double capacity, std::string reason) {
    LinkState& state = links_[index(link)];
    if (state.suspects == 0) raised_at_ = now();
    raise(link, capacity, std::move(reason));
  }

  // Whatever was learned about stages on the link was learned with a wrong capacity; but not where it was only
  // suspected for a while.
  void raise(LinkId link, double capacity, std::string reason) {
    LinkState& state = links_[index(link)];
    state.capacity = std::min(state.nominal, capacity);
    state.high = std::max(state.high, state.capacity);
    state.reason = std::move(reason);
    if (state.suspects != 0) return;
    if (history.table()) judge_.doubt(link, table());
  }

  // ---- Who is to blame.

  void blame() {
    std::vector<LinkFacts> facts;
    for (const LinkState& link : links_) facts.push_back(facts_of(link));
    const std::vector<Blame> blames = explain_slow_stages(table(), verdicts_, facts);
    for (std::size_t first = 0; first < blames.size();) {
      const std::size_t end = first + index(blames[first].alternatives) + 1;
      const bool certain = blames[first].taken || is_one_cable(blames, first, end);
      if (!certain) ++groups_;
      for (; first < end; ++first) convict(blames[first], certain ? 0 : groups_);
    }
  }

  static LinkFacts facts_of(const LinkState& link) { return {link.nominal, link.capacity, link.proven, link.others}; }

  // Interfaces tell what nobody could tell apart before: of suspects of which others take what is missing, it is those.
  void count_others() {
    for (std::size_t link = 0; link < links_.size(); ++link) links_[link].others = history.others_on(link, kFraming);
    for (const LinkState& state : links_) {
      if (state.suspects == 0 || !is_taken(facts_of(state), state.capacity)) continue;
      decide(state.suspects,
             [this](LinkId link) { return is_taken(facts_of(links_[index(link)]), links_[index(link)].capacity); });
    }
  }

  bool is_one_cable(const std::vector<Blame>& blames, std::size_t first, std::size_t end) const {
    for (std::size_t i = first; i < end; ++i) {
      if (!cables_.in_series(blames[i].link, blames[first].link)) return false;
    }
    return true;
  }

  void convict(const Blame& blame, int suspects) {
    LinkState& link = links_[index(blame.link)];
    if (suspects != 0 && link.suspects == 0) {
      link.suspected_since = now();
      link.before = link.capacity;
      link.most_probed = 0;
      link.probes = 0;
    }
    link.suspects = suspects;
    link.accused = false;
    link.capacity = std::max(blame.capacity, link.proven);
    if (!link.slow()) link.slow_since = now();
    link.reason = fmt::format("{} {} took up to {:.1f} times as long as expected", blame.stages,
                              blame.stages == 1 ? "stage that crosses it" : "stages that cross it", blame.excess);
    if (suspects != 0) link.reason += fmt::format(", which {} other links would explain as well", blame.alternatives);
    if (blame.taken) link.reason += fmt::format("; others send {} over it", text_of(link.others));
    hear(link, link.capacity, now());
  }

  // ---- Slow links: still slow? As slow?

  void follow_slow_links() {
    const std::vector<double> others = capacities_without_slow_links();
    for (std::size_t link = 0; link < links_.size(); ++link) {
      LinkState& state = links_[link];
      if (!state.slow() || !state.reason.empty()) continue;
      const auto [high, iteration] = upper_bound(static_cast<LinkId>(link), others);
      if (!std::isfinite(high)) continue;
      hear(state, high, iteration);
      const double capacity = std::max(state.proven, high);
      if (capacity > kLeastCorrection * state.capacity) {
        show_faster(static_cast<LinkId>(link), capacity, "stages that cross it take less time than before");
      } else if (capacity * kLeastCorrection < state.capacity) {
        state.capacity = capacity;
        state.reason = "stages that cross it take more time than before";
      }
    }
  }

  // From stages whose time only this link explains, given the capacities of `others` that are not slow; infinite where
  // there is none. With the iteration that told.
  std::pair<double, std::int64_t> upper_bound(LinkId link, const std::vector<double>& others) const {
    std::pair<double, std::int64_t> least{INFINITY, -1};
    for (std::size_t number = 0; number < verdicts_.size(); ++number) {
      const StageVerdict& verdict = verdicts_[number];
      if (!verdict.seen) continue;
      const LinkLoads& loads = table().stages()[number].loads;
      for (std::size_t i = 0; i < loads.size(); ++i) {
        if (loads[i].first == link && is_told_by(link, number, others)) {
          least = std::min(least, std::pair(verdict.implied[i], verdict.latest->iteration));
        }
      }
    }
    return least;
  }

  bool is_told_by(LinkId link, std::size_t number, const std::vector<double>& others) const {
    const StageVerdict& verdict = verdicts_[number];
    const TableStage& stage = table().stages()[number];
    const double usual = judge_.usual_seconds(number, table(), *verdict.latest, others);
    if (verdict.seconds < options_.tolerance * usual + options_.slack_seconds) return false;
    const auto need = [&](LinkId id) { return verdict.latest->bytes[index(id)] / links_[index(id)].capacity; };
    return std::all_of(stage.loads.begin(), stage.loads.end(), [&](const auto& load) {
      return !links_[index(load.first)].slow() || need(load.first) <= kLeastCorrection * need(link);
    });
  }

  // ---- What time does.

  void grow_unheard() {
    for (std::size_t link = 0; link < links_.size(); ++link) {
      LinkState& state = links_[link];
      if (!state.slow() || now() - state.heard < options_.doubling_iterations) continue;
      raise(static_cast<LinkId>(link), 2 * state.capacity,
            fmt::format("nothing was heard of it for {} iterations", now() - state.heard));
      state.heard = now();
      state.high = state.nominal;
    }
  }

  void stop_waiting_for_probes() {
    for (LinkId link = 0; link < static_cast<LinkId>(links_.size()); ++link) {
      const LinkState& state = links_[index(link)];
      if (state.suspects == 0 || now() - state.suspected_since < kProbePatience * options_.window) continue;
      decide(state.suspects, [this](LinkId other) { return is_likely(other); });
    }
  }

  // Ends the doubt about a group of suspects.
  template <typename Predicate>
  void decide(int group, Predicate is_guilty) {
    std::vector<LinkId> innocent;
    for_each_suspect(group, [&](LinkId link) {
      if (!is_guilty(link)) innocent.push_back(link);
    });
    for (const LinkId link : innocent) acquit(links_[index(link)], "another link is more likely to be slow");
    for_each_suspect(group, [&](LinkId link) { links_[index(link)].suspects = 0; });
  }

  // Of its group: those that slow probes crossed, and of them the slowest, since busy hosts hold up all probes alike.
  // Of those the cables with the most workers behind them: what many share is more likely to be contended.
  bool is_likely(LinkId link) const {
    const int group = links_[index(link)].suspects;
    double least = INFINITY;
    for_each_suspect(group, [&](LinkId other) { least = std::min(least, probed_part(other)); });
    const auto is_slow = [&](LinkId other) { return std::isinf(least) || probed_part(other) <= kDistinct * least; };
    int most = 0;
    for_each_suspect(group, [&](LinkId other) {
      if (is_slow(other)) most = std::max(most, cables_.workers_behind(other));
    });
    return is_slow(link) && cables_.workers_behind(link) == most;
  }

  // What slow probes brought through it at most; infinite where there was none.
  double probed_part(LinkId link) const {
    const LinkState& state = links_[index(link)];
    return state.accused ? state.most_probed / state.before : INFINITY;
  }

  template <typename Action>
  void for_each_suspect(int group, Action action) const {
    for (LinkId link = 0; link < static_cast<LinkId>(links_.size()); ++link) {
      if (links_[index(link)].suspects == group) action(link);
    }
  }

  static void acquit(LinkState& link, std::string reason) {
    link.capacity = std::max(link.capacity, link.before);
    link.high = link.nominal;
    if (link.capacity >= link.nominal) link.slow_since = -1;
    link.suspects = 0;
    link.reason = std::move(reason);
  }

  // A link that has nearly all of its capacity has all of it.
  void restore_recovered_links() {
    for (LinkState& link : links_) {
      if (!link.slow() || link.capacity < options_.dead_band * link.nominal) continue;
      link.capacity = link.high = link.nominal;
      link.slow_since = -1;
      link.suspects = 0;
    }
  }

  // Where one suspect is left, it was that one.
  void end_decided_suspicions() {
    std::vector<std::size_t> found;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      if (links_[link].suspects != 0 && is_last_suspect(link)) found.push_back(link);
    }
    for (const std::size_t link : found) links_[link].suspects = 0;
  }

  // All others of its group have been cleared, but for those that no measurement tells apart from it.
  bool is_last_suspect(std::size_t link) const {
    for (std::size_t other = 0; other < links_.size(); ++other) {
      const bool same = cables_.in_series(static_cast<LinkId>(other), static_cast<LinkId>(link));
      if (!same && links_[other].suspects == links_[link].suspects) return false;
    }
    return true;
  }

  void report(const std::vector<LinkState>& before) {
    findings.clear();
    for (LinkState& link : links_) {
      if (!link.slow() || link.suspects != 0) continue;
      const bool anew = link.slow_until < link.slow_since;
      link.when_slow = anew ? link.capacity : std::min(link.when_slow, link.capacity);
      link.slow_until = now();
    }
    for (std::size_t link = 0; link < links_.size(); ++link) {
      if (links_[link].capacity == before[link].capacity) continue;
      findings.push_back(
          {static_cast<LinkId>(link), {before[link].capacity}, {links_[link].capacity}, links_[link].reason});
    }
    publish();
  }

  void publish() {
    estimates.clear();
    for (const LinkState& link : links_) {
      LinkEstimate estimate;
      estimate.capacity = {link.capacity};
      estimate.low = {std::min(link.capacity, link.proven)};
      estimate.high = {high_of(link)};
      estimate.slow_since = link.slow_since;
      estimate.heard = link.heard;
      estimate.ambiguous = link.suspects != 0;
      estimate.others = {link.others};
      if (!link.slow() && is_watched(link)) estimate.watched_for = {link.when_slow};
      estimate.probes = link.probes;
      estimate.probed = {link.most_probed};
      estimates.push_back(estimate);
    }
  }

  const MonitorOptions options_;
  std::vector<LinkState> links_;
  const Cables cables_;
  StageJudge judge_;
  std::vector<StageVerdict> verdicts_;
  int groups_ = 0;               // of suspects, so far
  std::int64_t raised_at_ = -1;  // iteration that showed that a slow link is faster; -1: none
};

LinkMonitor::LinkMonitor(const Topology& nominal, const MonitorOptions& options)
    : state_(std::make_unique<State>(nominal, options)) {}

LinkMonitor::~LinkMonitor() = default;

void LinkMonitor::adopt(std::int64_t first_iteration, std::shared_ptr<const StageTable> table) {
  state_->history.adopt(first_iteration, std::move(table));
}

void LinkMonitor::add(const SampleBatch& batch) { state_->add(batch); }

const Topology& LinkMonitor::nominal() const { return state_->nominal; }

const std::vector<LinkEstimate>& LinkMonitor::estimates() const { return state_->estimates; }

const std::vector<LinkFinding>& LinkMonitor::findings() const { return state_->findings; }

Topology LinkMonitor::estimated() const { return state_->assumed(); }

Topology LinkMonitor::likely() const { return state_->nominal.with_capacities(state_->likely()); }

bool LinkMonitor::undecided() const { return state_->undecided(); }

bool LinkMonitor::recovering() const { return state_->recovering(); }

bool LinkMonitor::relapsing() const { return state_->relapsing(); }

std::vector<LinkId> LinkMonitor::links_to_probe() const { return state_->links_to_probe(); }

double LinkMonitor::compute_seconds() const { return state_->history.compute_seconds(); }

double LinkMonitor::iteration_seconds(bool overlap) const { return state_->history.iteration_seconds(overlap); }

double LinkMonitor::elapsed_seconds(bool overlap) const { return state_->history.elapsed_seconds(overlap); }

std::int64_t LinkMonitor::last_iteration() const { return state_->history.last_iteration(); }

}  // namespace dssync
