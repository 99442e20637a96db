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

// The pairs of a matching, and what their NICs allow.
struct Transfers {
  Matching pairs;
  std::vector<double> nic;            // of the slower end
  std::vector<std::size_t> by_speed;  // slowest NIC first

  void set_nics(const std::vector<double>& nics) {
    nic.clear();
    for (const auto& [a, b] : pairs) nic.push_back(std::min(nics[index(a)], nics[index(b)]));
    by_speed.resize(pairs.size());
    std::iota(by_speed.begin(), by_speed.end(), std::size_t{0});
    std::stable_sort(by_speed.begin(), by_speed.end(), [&](std::size_t a, std::size_t b) { return nic[a] < nic[b]; });
  }
};

// How far a rate is from what was expected.
double misfit_of_rate(double rate, double expected) {
  const double residual = std::log(rate / expected) / kNoise;
  return std::min(kOutlier, residual * residual);
}

// What a matching measured, without pairs that were not.
struct Sample {
  Transfers transfers;
  std::vector<double> rates;
  std::vector<double> nic_misfits;  // by pair, if only NICs limit it

  const Matching& pairs() const { return transfers.pairs; }

  void set_nics(const std::vector<double>& nics) {
    transfers.set_nics(nics);
    nic_misfits.clear();
    for (std::size_t i = 0; i < rates.size(); ++i) nic_misfits.push_back(misfit_of_rate(rates[i], transfers.nic[i]));
  }
};

std::vector<Sample> samples_of(const std::vector<MeasuredMatching>& matchings) {
  std::vector<Sample> samples;
  for (const MeasuredMatching& matching : matchings) {
    Sample sample;
    for (std::size_t i = 0; i < matching.pairs.size() && i < matching.rates.size(); ++i) {
      const double rate = rate_of(matching.rates[i]);
      if (!(rate > 0) || !std::isfinite(rate)) continue;
      sample.transfers.pairs.push_back(matching.pairs[i]);
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
    for (std::size_t i = 0; i < sample.pairs().size(); ++i) {
      for (const int host : {sample.pairs()[i].first, sample.pairs()[i].second}) {
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
  explicit Sharing(const RackModel& model) : model_(model), limit_of_(model.uplink.size(), kNone) {
    for (std::size_t rack = 0; rack < model.uplink.size(); ++rack) {
      if (!std::isfinite(model.uplink[rack])) continue;
      limit_of_[rack] = static_cast<int>(capacities_.size());
      capacities_.push_back(model.uplink[rack]);
    }
  }

  // Writes the expected rates of the pairs. REQUIRES: the transfers have the model's NICs.
  void share(const Transfers& transfers, std::vector<double>& rates) {
    rates = transfers.nic;
    if (capacities_.empty()) return;
    open_.clear();
    left_ = capacities_;
    flows_.assign(capacities_.size(), 0);
    shares_.assign(capacities_.size(), kUnlimited);
    for (const std::size_t pair : transfers.by_speed) {
      const auto [a, b] = transfers.pairs[pair];
      const int rack_a = model_.rack[index(a)];
      const int rack_b = model_.rack[index(b)];
      if (rack_a == rack_b) continue;
      const Open open{pair, limit_of_[index(rack_a)], limit_of_[index(rack_b)]};
      if (open.a == kNone && open.b == kNone) continue;  // it has its NIC's rate
      open_.push_back(open);
      if (open.a != kNone) ++flows_[index(open.a)];
      if (open.b != kNone) ++flows_[index(open.b)];
    }
    for (std::size_t limit = 0; limit < flows_.size(); ++limit) update_share(limit);
    for (first_ = 0; first_ < open_.size();) fix_next_rate(rates);
  }

 private:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  // A transfer that still grows, and the uplinks that may limit it.
  struct Open {
    std::size_t pair;
    int a;
    int b;
  };

  // Either the slowest NIC or the fullest uplink decides next.
  void fix_next_rate(std::vector<double>& rates) {
    const auto fullest = std::min_element(shares_.begin(), shares_.end());
    const double share = *fullest;
    const Open& slowest = open_[first_];
    if (rates[slowest.pair] <= share) {
      fix(slowest, rates[slowest.pair]);
      ++first_;
      return;
    }
    const int full = static_cast<int>(fullest - shares_.begin());
    std::size_t kept = first_;
    for (std::size_t i = first_; i < open_.size(); ++i) {
      if (open_[i].a == full || open_[i].b == full) {
        rates[open_[i].pair] = share;
        fix(open_[i], share);
      } else {
        open_[kept++] = open_[i];
      }
    }
    open_.resize(kept);
  }

  void fix(const Open& open, double rate) {
    for (const int limit : {open.a, open.b}) {
      if (limit == kNone) continue;
      left_[index(limit)] = std::max(0.0, left_[index(limit)] - rate);
      --flows_[index(limit)];
      update_share(index(limit));
    }
  }

  void update_share(std::size_t limit) {
    shares_[limit] = flows_[limit] > 0 ? left_[limit] / flows_[limit] : kUnlimited;
  }

  const RackModel& model_;
  std::vector<int> limit_of_;       // by rack: its place among the uplinks with a capacity; kNone without
  std::vector<double> capacities_;  // of those uplinks; the next three go with it
  std::vector<double> left_;
  std::vector<int> flows_;
  std::vector<double> shares_;  // of each flow in what is left
  std::vector<Open> open_;      // slowest NIC first
  std::size_t first_ = 0;       // of `open_`: those before are settled
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
      : samples_(samples_of(matchings)), nics_(fastest_of(samples_, hosts)) {
    for (Sample& sample : samples_) sample.set_nics(nics_);
  }

  // A misfit that reaches `bound` is not added up to its end.
  RackModel fit(std::vector<int> rack, double bound = std::numeric_limits<double>::infinity()) const {
    RackModel model;
    const int racks = renumber(rack);
    model.rack = std::move(rack);
    model.nic = nics_;
    model.uplink.assign(index(racks), std::numeric_limits<double>::infinity());
    if (racks > 1) fit_uplinks(model);
    model.misfit = misfit_of(model, bound);
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
      sharing.share(sample.transfers, expected_);
      for (std::size_t i = 0; i < sample.pairs().size(); ++i) {
        const auto [a, b] = sample.pairs()[i];
        if (expected_[i] < kSimilar * sample.transfers.nic[i]) continue;
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
    for (Sample& sample : samples_) sample.set_nics(nics_);
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
    struct Uplink {
      double sent = 0;
      double possible = 0;
      bool filled = false;
      std::vector<double> sums;
    };
    std::vector<Uplink> uplinks(model.uplink.size());
    for (Uplink& uplink : uplinks) uplink.sums.reserve(samples_.size());
    for (const Sample& sample : samples_) {
      for (Uplink& uplink : uplinks) uplink.sent = uplink.possible = 0;
      for (std::size_t i = 0; i < sample.rates.size(); ++i) {
        const auto [a, b] = sample.pairs()[i];
        const int rack_a = model.rack[index(a)];
        const int rack_b = model.rack[index(b)];
        if (rack_a == rack_b) continue;
        for (const int rack : {rack_a, rack_b}) {
          uplinks[index(rack)].sent += sample.rates[i];
          uplinks[index(rack)].possible += sample.transfers.nic[i];
        }
      }
      for (Uplink& uplink : uplinks) {
        if (uplink.sent <= 0) continue;
        uplink.filled = uplink.filled || uplink.sent < kFilled * uplink.possible;
        uplink.sums.push_back(uplink.sent);
      }
    }
    for (std::size_t rack = 0; rack < uplinks.size(); ++rack) {
      if (uplinks[rack].filled) model.uplink[rack] = top_of(std::move(uplinks[rack].sums));
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

  double misfit_of(const RackModel& model, double bound) const {
    double sum = kPriceOfRack * (model.racks() - 1);
    Sharing sharing(model);
    for (const Sample& sample : samples_) {
      if (sum >= bound) break;
      sharing.share(sample.transfers, expected_);
      for (std::size_t i = 0; i < sample.rates.size(); ++i) {
        const bool is_free = expected_[i] == sample.transfers.nic[i];
        sum += is_free ? sample.nic_misfits[i] : misfit_of_rate(sample.rates[i], expected_[i]);
      }
    }
    return sum;
  }

  bool try_division(RackModel& best, std::vector<int> rack) const {
    const double enough = best.misfit - 1e-9;
    RackModel model = fit(std::move(rack), enough);
    if (model.misfit >= enough) return false;
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
    for (std::size_t i = 0; i < sample.pairs().size(); ++i) {
      const auto [a, b] = sample.pairs()[i];
      part.push_back(sample.rates[i] / std::min(nics_[index(a)], nics_[index(b)]));
      slowest = std::min(slowest, part.back());
    }
    if (slowest > kSlow) return;
    for (std::size_t i = 0; i < sample.pairs().size(); ++i) {
      const auto [a, b] = sample.pairs()[i];
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

  std::vector<Sample> samples_;
  std::vector<double> nics_;
  mutable std::vector<double> expected_;
};

}  // namespace

RackModel fit_racks(const std::vector<MeasuredMatching>& matchings, const std::vector<int>& start) {
  Fitter fitter(matchings, start.size());
  const std::vector<int> one_rack(start.size(), 0);
  std::vector<std::vector<int>> starts{start, fitter.guess(), one_rack};
  for (std::vector<int>& from : starts) renumber(from);
  RackModel best;
  for (int pass = 0; pass < kPasses; ++pass) {
    best = fitter.fit(one_rack);
    for (auto from = starts.begin(); from != starts.end(); ++from) {
      if (std::find(starts.begin(), from, *from) != from) continue;
      RackModel found = fitter.search(*from);
      if (found.misfit < best.misfit) best = std::move(found);
    }
    starts = {best.rack};
    if (pass + 1 < kPasses) fitter.refine_nics(best);
  }
  return best;
}

std::vector<double> expected_rates(const RackModel& model, const Matching& pairs) {
  Transfers transfers{pairs, {}, {}};
  transfers.set_nics(model.nic);
  std::vector<double> rates;
  Sharing(model).share(transfers, rates);
  return rates;
}

}  // namespace dssync
