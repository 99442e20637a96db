#include "dssync/monitor/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "dssync/base/index.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

constexpr int kProbeTurns = 3;
constexpr double kTurnSeconds = 0.02;      // of a link, if it is as slow as it seems
constexpr double kLeastBytes = 64 * 1024;  // of a transfer: less says more about the hosts than about the network
constexpr double kEnough = 4;              // how many times faster than it seems a link can turn out to be in one probe
constexpr int kSuspect = 10;               // as doubtful as a link can be
constexpr std::size_t kMostLinks = 64;
constexpr int kMostPairs = 8;
constexpr int kMostPartners = 32;  // that are looked at for a pair

class ProbePlanner {
 public:
  ProbePlanner(const LinkMonitor& monitor, std::int64_t turn)
      : monitor_(monitor), topology_(monitor.nominal()), turn_(turn) {
    for (const LinkId link : monitor.links_to_probe()) doubtful_.push_back(link);
    for (const LinkEstimate& estimate : monitor.estimates()) {
      const double nominal = topology_.link(static_cast<LinkId>(doubts_.size())).capacity.bytes_per_second;
      const double probed = std::min(1.0, estimate.probed.bytes_per_second / nominal);
      doubts_.push_back(estimate.probes == 0 ? 0 : static_cast<int>(kSuspect * (1 - probed)));
    }
    for (const LinkId link : doubtful_) doubts_[index(link)] = kSuspect;
  }

  Probe run() {
    // Those that were probed least, so that each has as many chances; of them, those with the fewest workers behind
    // them: pairs inside a rack clear its hosts, and what is left is the rack's uplink.
    std::stable_sort(doubtful_.begin(), doubtful_.end(), [this](LinkId a, LinkId b) {
      return std::pair(monitor_.estimates()[index(a)].probes, workers_behind(a)) <
             std::pair(monitor_.estimates()[index(b)].probes, workers_behind(b));
    });
    for (const LinkId link : doubtful_) {
      if (targets_ < kMostLinks) add(link);
    }
    probe_.turns = kProbeTurns;
    return std::move(probe_);
  }

 private:
  double estimate(LinkId link) const { return monitor_.estimates()[index(link)].capacity.bytes_per_second; }

  // What it may have, at the least. Where that decides something, a probe is longer, since busy hosts hold it up.
  std::pair<double, double> feared_capacity_and_seconds(LinkId link) const {
    const double watched_for = monitor_.estimates()[index(link)].watched_for.bytes_per_second;
    return watched_for > 0 ? std::pair(watched_for, 2 * kTurnSeconds) : std::pair(estimate(link), kTurnSeconds);
  }

  int workers_behind(LinkId link) const { return topology_.node(node_of(link)).count; }

  NodeId node_of(LinkId link) const {
    NodeId id = 0;
    while (topology_.node(id).up != link && topology_.node(id).down != link) ++id;
    return id;
  }

  void add(LinkId link) {
    if (used_.count(link) != 0) return;
    const Node& below = topology_.node(node_of(link));
    if (below.count == 0 || below.count == topology_.workers()) return;
    const double wanted = std::min(topology_.link(link).capacity.bytes_per_second, kEnough * estimate(link));
    std::vector<std::pair<Rank, Rank>> pairs;
    std::set<LinkId> taken;
    double rate = 0;
    while (rate < wanted * 0.99 && pairs.size() < index(kMostPairs)) {
      const auto pair = best_pair(below, below.up == link, link);
      if (!pair) break;
      rate += take(*pair, link, taken);
      pairs.push_back(*pair);
    }
    used_.insert(taken.begin(), taken.end());
    if (pairs.empty()) return;
    ++targets_;
    const auto [feared, seconds] = feared_capacity_and_seconds(link);
    const double bytes = std::max(kLeastBytes, feared * seconds / static_cast<double>(pairs.size()));
    for (const auto& [from, to] : pairs) probe_.transfers.push_back({from, to, bytes});
    probe_.seconds = std::max(probe_.seconds, kProbeTurns * bytes * static_cast<double>(pairs.size()) / feared);
  }

  std::vector<LinkId> path(Rank from, Rank to) const {
    return route(topology_, topology_.host_at(topology_.position_of(from)),
                 topology_.host_at(topology_.position_of(to)));
  }

  // A pair that crosses the link, its path free of what other pairs use: the one that can send most, among those the
  // one with the least doubtful path, among those the first from where this turn starts to look.
  std::optional<std::pair<Rank, Rank>> best_pair(const Node& below, bool outwards, LinkId target) const {
    const int others = topology_.workers() - below.count;
    std::optional<std::pair<Rank, Rank>> best;
    std::pair<double, int> least;
    for (int i = 0; i < std::min(below.count, kMostPartners); ++i) {
      const int inside = below.first + static_cast<int>((turn_ + i) % below.count);
      for (int j = 0; j < std::min(others, kMostPartners); ++j) {
        const int number = static_cast<int>((below.first + turn_ * 7 + i + j) % others);
        const int outside = number < below.first ? number : number + below.count;
        std::pair<Rank, Rank> pair{topology_.rank_at(inside), topology_.rank_at(outside)};
        if (!outwards) std::swap(pair.first, pair.second);
        const auto drawback = drawback_of(pair, target);
        if (drawback && (!best || *drawback < least)) {
          best = pair;
          least = *drawback;
        }
      }
    }
    return best;
  }

  // How much of the link's nominal capacity the rest of the path does not allow, and how doubtful that is; nothing
  // where the pair is in the way of others.
  std::optional<std::pair<double, int>> drawback_of(const std::pair<Rank, Rank>& pair, LinkId target) const {
    if (senders_.count(pair.first) != 0 || receivers_.count(pair.second) != 0) return std::nullopt;
    std::pair<double, int> drawback{0, 0};
    for (const LinkId link : path(pair.first, pair.second)) {
      if (used_.count(link) != 0) return std::nullopt;
      if (link != target) drawback.second += doubts_[index(link)];
      drawback.first = std::max(drawback.first, topology_.link(target).capacity.bytes_per_second -
                                                    topology_.link(link).capacity.bytes_per_second);
    }
    return drawback;
  }

  // Returns what the pair can send, apart from the target.
  double take(const std::pair<Rank, Rank>& pair, LinkId target, std::set<LinkId>& taken) {
    senders_.insert(pair.first);
    receivers_.insert(pair.second);
    double rate = INFINITY;
    for (const LinkId link : path(pair.first, pair.second)) {
      taken.insert(link);
      if (link != target) rate = std::min(rate, topology_.link(link).capacity.bytes_per_second);
    }
    return rate;
  }

  const LinkMonitor& monitor_;
  const Topology& topology_;
  const std::int64_t turn_;
  std::vector<LinkId> doubtful_;
  // By link: what is not suspected may be contended all the same, for a flow that comes and goes lets some probes pass.
  std::vector<int> doubts_;
  std::set<Rank> senders_, receivers_;
  std::set<LinkId> used_;
  std::size_t targets_ = 0;
  Probe probe_;
};

}  // namespace

Probe propose_probe(const LinkMonitor& monitor, std::int64_t turn, double iteration_seconds, double budget) {
  Probe probe = ProbePlanner(monitor, turn).run();
  const double affordable = std::max(1e-9, budget * iteration_seconds);
  probe.interval = std::max<std::int64_t>(1, std::llround(std::ceil(std::min(1e6, probe.seconds / affordable))));
  return probe;
}

}  // namespace dssync
