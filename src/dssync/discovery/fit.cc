#include "dssync/discovery/fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "dssync/base/index.h"

namespace dssync {
namespace {

constexpr double kNoise = 0.08;      // of a rate, relative: more than is expected, for shares are never quite fair
constexpr double kOutlier = 16;      // the most that one rate counts
constexpr double kPriceOfRack = 40;  // in squared deviations: a rack must explain more than that
constexpr double kFilled = 0.88;     // of what NICs would allow: below that something else was full
constexpr double kSlow = 0.85;       // likewise, of a single pair
constexpr double kSimilar = 0.85;    // of NICs
constexpr std::size_t kAlike = 3;    // sums that show the capacity of an uplink
constexpr int kSweeps = 12;
constexpr int kPasses = 3;  // each with better NICs

// The mean of both directions, or the one that was measured; 0 for none.
double rate_of(const MeasuredMatching::Rates& rates) {
  const double forward = rates.forward.bytes_per_second;
  const double backward = rates.backward.bytes_per_second;
  if (forward > 0 && backward > 0) return (forward + backward) / 2;
  return std::max(forward, backward);
}

// What a matching measured, without pairs that were not.
struct Sample {
  Matching pairs;
  std::vector<double> rates;
};

std::vector<Sample> samples_of(const std::vector<MeasuredMatching>& matchings) {
  std::vector<Sample> samples;
  for (const MeasuredMatching& matching : matchings) {
    Sample sample;
    for (std::size_t i = 0; i < matching.pairs.size() && i < matching.rates.size(); ++i) {
      const double rate = rate_of(matching.rates[i]);
      if (!(rate > 0) || !std::isfinite(rate)) continue;
      sample.pairs.push_back(matching.pairs[i]);
      sample.rates.push_back(rate);
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

// A host's NIC is as fast as its fastest transfer: perhaps only one of its partners was in the same rack.
std::vector<double> fastest_of(const std::vector<Sample>& samples, std::size_t hosts) {
  std::vector<double> fastest(hosts, 0);
  for (const Sample& sample : samples) {
    for (std::size_t i = 0; i < sample.pairs.size(); ++i) {
      for (const int host : {sample.pairs[i].first, sample.pairs[i].second}) {
        fastest[index(host)] = std::max(fastest[index(host)], sample.rates[i]);
      }
    }
  }
  for (double& rate : fastest) rate = rate > 0 ? rate : 1;
  return fastest;
}

// Transfers of one matching in one direction; the other one is its mirror image.
class Sharing {
 public:
  explicit Sharing(const RackModel& model) : model_(model), left_(model.uplink.size()), flows_(model.uplink.size()) {}

  // Writes the expected rates of the pairs.
  void share(const Matching& pairs, std::vector<double>& rates) {
    rates.assign(pairs.size(), 0);
    open_.clear();
    left_ = model_.uplink;
    std::fill(flows_.begin(), flows_.end(), 0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      rates[i] = std::min(model_.nic[index(pairs[i].first)], model_.nic[index(pairs[i].second)]);
      const auto [a, b] = racks_of(pairs[i]);
      if (a == b) continue;
      open_.push_back(i);
      ++flows_[a];
      ++flows_[b];
    }
    std::sort(open_.begin(), open_.end(), [&](std::size_t a, std::size_t b) { return rates[a] < rates[b]; });
    while (!open_.empty()) fix_next_rates(pairs, rates);
  }

 private:
  std::pair<std::size_t, std::size_t> racks_of(const std::pair<int, int>& pair) const {
    return {index(model_.rack[index(pair.first)]), index(model_.rack[index(pair.second)])};
  }

  // Either the slowest NIC or the fullest uplink decides next: the pairs that it holds up have their rates.
  void fix_next_rates(const Matching& pairs, std::vector<double>& rates) {
    double share = std::numeric_limits<double>::infinity();
    std::size_t fullest = 0;
    for (std::size_t rack = 0; rack < flows_.size(); ++rack) {
      if (flows_[rack] > 0 && left_[rack] / flows_[rack] < share) {
        share = left_[rack] / flows_[rack];
        fullest = rack;
      }
    }
    const bool by_nic = rates[open_.front()] <= share;
    const double rate = by_nic ? rates[open_.front()] : share;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const auto [a, b] = racks_of(pairs[open_[i]]);
      const bool is_fixed = by_nic ? i == 0 : a == fullest || b == fullest;
      if (!is_fixed) {
        open_[kept++] = open_[i];
        continue;
      }
      rates[open_[i]] = rate;
      for (const std::size_t rack : {a, b}) {
        left_[rack] = std::max(0.0, left_[rack] - rate);
        --flows_[rack];
      }
    }
    open_.resize(kept);
  }

  const RackModel& model_;
  std::vector<double> left_;
  std::vector<int> flows_;
  std::vector<std::size_t> open_;  // pairs that still grow, slowest NIC first
};

int renumber(std::vector<int>& rack) {
  std::vector<int> number(rack.size() + 1, kNone);
  int next = 0;
  for (int& at : rack) {
    if (number[index(at)] == kNone) number[index(at)] = next++;
    at = number[index(at)];
  }
  return next;
}

class Fitter {
 public:
  explicit Fitter(const std::vector<MeasuredMatching>& matchings, std::size_t hosts)
      : samples_(samples_of(matchings)), nics_(fastest_of(samples_, hosts)) {}

  RackModel fit(std::vector<int> rack) const {
    RackModel model;
    const int racks = renumber(rack);
    model.rack = std::move(rack);
    model.nic = nics_;
    model.uplink.assign(index(racks), std::numeric_limits<double>::infinity());
    if (racks > 1) fit_uplinks(model);
    model.misfit = misfit_of(model);
    return model;
  }

  // Hosts move one by one, racks merge, as long as that explains more.
  RackModel search(const std::vector<int>& start) const {
    RackModel best = fit(start);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const double before = best.misfit;
      move_hosts(best);
      merge_racks(best);
      if (best.misfit >= before - 1e-9) break;
    }
    return best;
  }

  // The fastest of many noisy rates is too fast. Better: the mean of those that only the NIC has limited.
  void refine_nics(const RackModel& model) {
    std::vector<double> sum(nics_.size(), 0);
    std::vector<int> count(nics_.size(), 0);
    Sharing sharing(model);
    for (const Sample& sample : samples_) {
      sharing.share(sample.pairs, expected_);
      for (std::size_t i = 0; i < sample.pairs.size(); ++i) {
        const auto [a, b] = sample.pairs[i];
        if (expected_[i] < kSimilar * std::min(nics_[index(a)], nics_[index(b)])) continue;
        if (sample.rates[i] < kSlow * kSimilar * expected_[i]) continue;
        for (const auto& [host, partner] : {std::pair(a, b), std::pair(b, a)}) {
          if (nics_[index(partner)] < kSimilar * nics_[index(host)]) continue;
          sum[index(host)] += std::log(sample.rates[i]);
          ++count[index(host)];
        }
      }
    }
    for (std::size_t host = 0; host < nics_.size(); ++host) {
      if (count[host] > 0) nics_[host] = std::exp(sum[host] / count[host]);
    }
  }

  // Who was slow together is apart; who was fast while others were slow is together.
  std::vector<int> guess() const {
    const std::size_t hosts = nics_.size();
    std::vector<std::vector<double>> bond(hosts, std::vector<double>(hosts, 0));
    for (const Sample& sample : samples_) add_bonds(sample, bond);
    std::vector<int> rack(hosts);
    std::iota(rack.begin(), rack.end(), 0);
    while (join_best(bond, rack)) {
    }
    return rack;
  }

 private:
  void fit_uplinks(RackModel& model) const {
    const std::size_t racks = model.uplink.size();
    std::vector<bool> filled(racks, false);
    std::vector<std::vector<double>> sums(racks);
    std::vector<double> sent(racks);
    std::vector<double> possible(racks);
    for (const Sample& sample : samples_) {
      std::fill(sent.begin(), sent.end(), 0);
      std::fill(possible.begin(), possible.end(), 0);
      for (std::size_t i = 0; i < sample.pairs.size(); ++i) {
        const auto [a, b] = sample.pairs[i];
        if (model.rack[index(a)] == model.rack[index(b)]) continue;
        for (const int host : {a, b}) {
          sent[index(model.rack[index(host)])] += sample.rates[i];
          possible[index(model.rack[index(host)])] += std::min(nics_[index(a)], nics_[index(b)]);
        }
      }
      for (std::size_t rack = 0; rack < racks; ++rack) {
        if (sent[rack] <= 0) continue;
        filled[rack] = filled[rack] || sent[rack] < kFilled * possible[rack];
        sums[rack].push_back(sent[rack]);
      }
    }
    for (std::size_t rack = 0; rack < racks; ++rack) {
      if (filled[rack]) model.uplink[rack] = top_of(std::move(sums[rack]));
    }
  }

  // The mean of the largest sums that are alike: where the uplink was full. One that stands alone is an error.
  static double top_of(std::vector<double> sums) {
    std::sort(sums.begin(), sums.end(), std::greater<>());
    const std::size_t enough = std::min(kAlike, sums.size());
    for (auto first = sums.begin();; ++first) {
      const auto last = std::find_if(first, sums.end(), [&](double sum) { return sum < kFilled * *first; });
      const auto count = static_cast<std::size_t>(last - first);
      if (count >= enough || last == sums.end()) return std::accumulate(first, last, 0.0) / static_cast<double>(count);
    }
  }

  double misfit_of(const RackModel& model) const {
    double sum = kPriceOfRack * (model.racks() - 1);
    Sharing sharing(model);
    for (const Sample& sample : samples_) {
      sharing.share(sample.pairs, expected_);
      for (std::size_t i = 0; i < sample.rates.size(); ++i) {
        const double residual = std::log(sample.rates[i] / expected_[i]) / kNoise;
        sum += std::min(kOutlier, residual * residual);
      }
    }
    return sum;
  }

  bool try_division(RackModel& best, std::vector<int> rack) const {
    RackModel model = fit(std::move(rack));
    if (model.misfit >= best.misfit - 1e-9) return false;
    best = std::move(model);
    return true;
  }

  void move_hosts(RackModel& best) const {
    for (std::size_t host = 0; host < nics_.size(); ++host) {
      for (int rack = 0; rack <= best.racks(); ++rack) {
        if (rack == best.rack[host]) continue;
        std::vector<int> moved = best.rack;
        moved[host] = rack;
        try_division(best, std::move(moved));
      }
    }
  }

  void merge_racks(RackModel& best) const {
    for (int a = 0; a < best.racks(); ++a) {
      for (int b = a + 1; b < best.racks(); ++b) {
        std::vector<int> merged = best.rack;
        std::replace(merged.begin(), merged.end(), b, a);
        if (try_division(best, std::move(merged))) b = a;
      }
    }
  }

  void add_bonds(const Sample& sample, std::vector<std::vector<double>>& bond) const {
    std::vector<double> part;
    double slowest = 1;
    for (std::size_t i = 0; i < sample.pairs.size(); ++i) {
      const auto [a, b] = sample.pairs[i];
      part.push_back(sample.rates[i] / std::min(nics_[index(a)], nics_[index(b)]));
      slowest = std::min(slowest, part.back());
    }
    if (slowest > kSlow) return;
    for (std::size_t i = 0; i < sample.pairs.size(); ++i) {
      const auto [a, b] = sample.pairs[i];
      const double weight = part[i] < (1 + slowest) / 2 ? -2 : 1;
      bond[index(a)][index(b)] += weight;
      bond[index(b)][index(a)] += weight;
    }
  }

  // Joins the two racks with the strongest mean bond; false where none is left that is positive.
  static bool join_best(const std::vector<std::vector<double>>& bond, std::vector<int>& rack) {
    const int racks = renumber(rack);
    std::vector<std::vector<double>> sum(index(racks), std::vector<double>(index(racks), 0));
    for (std::size_t a = 0; a < rack.size(); ++a) {
      for (std::size_t b = 0; b < rack.size(); ++b) sum[index(rack[a])][index(rack[b])] += bond[a][b];
    }
    double best = 0;
    std::pair<int, int> pair{0, 0};
    for (int a = 0; a < racks; ++a) {
      for (int b = a + 1; b < racks; ++b) {
        if (sum[index(a)][index(b)] <= best) continue;
        best = sum[index(a)][index(b)];
        pair = {a, b};
      }
    }
    if (best <= 0) return false;
    std::replace(rack.begin(), rack.end(), pair.second, pair.first);
    return true;
  }

  const std::vector<Sample> samples_;
  std::vector<double> nics_;
  mutable std::vector<double> expected_;
};

}  // namespace

RackModel fit_racks(const std::vector<MeasuredMatching>& matchings, const std::vector<int>& start) {
  Fitter fitter(matchings, start.size());
  const std::vector<int> one_rack(start.size(), 0);
  std::vector<std::vector<int>> starts{start, fitter.guess(), one_rack};
  RackModel best;
  for (int pass = 0; pass < kPasses; ++pass) {
    best = fitter.fit(one_rack);
    for (const std::vector<int>& from : starts) {
      RackModel found = fitter.search(from);
      if (found.misfit < best.misfit) best = std::move(found);
    }
    starts = {best.rack};
    if (pass + 1 < kPasses) fitter.refine_nics(best);
  }
  return best;
}

std::vector<double> expected_rates(const RackModel& model, const Matching& pairs) {
  std::vector<double> rates;
  Sharing(model).share(pairs, rates);
  return rates;
}

}  // namespace dssync
