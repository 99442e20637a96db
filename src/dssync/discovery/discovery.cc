#include "dssync/discovery/discovery.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"
#include "dssync/discovery/fit.h"

namespace dssync {
namespace {

constexpr int kFirst = 12;   // matchings at least before anything is concluded
constexpr int kFlat = 36;    // matchings without a sign of racks that make a flat network
constexpr int kStable = 12;  // matchings that have not changed the racks
constexpr int kMost = 60;    // matchings
constexpr int kSmall = 4;    // hosts: fewer cannot fill an uplink that holds two of them
constexpr int kFew = 3;      // matchings where there are no racks

constexpr double kUnmeasured = 1.25e9;  // bytes per second of a NIC that nothing is known about

std::string rack_name(int rack) {
  return rack < 26 ? fmt::format("rack-{}", static_cast<char>('a' + rack)) : fmt::format("rack-{}", rack + 1);
}

// Hosts have the names that they have.
std::string switch_name(std::string name, const std::vector<std::string>& hosts) {
  while (std::find(hosts.begin(), hosts.end(), name) != hosts.end()) name += "-switch";
  return name;
}

// More digits would be noise.
Bandwidth three_digits(double bytes_per_second) {
  return parse_bandwidth(fmt::format("{:.3g}Mbps", bytes_per_second * 8e-6));
}

// The middle one, or of two the larger. REQUIRES: there is one.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Values that differ by less than the tolerance become their common mean.
void even_out(std::vector<double>& values, double tolerance) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  for (std::size_t first = 0; first < order.size();) {
    double sum = 0;
    std::size_t end = first;
    while (end < order.size() && values[order[end]] <= values[order[first]] * (1 + tolerance)) {
      sum += values[order[end++]];
    }
    const double mean = sum / static_cast<double>(end - first);
    for (; first < end; ++first) values[order[first]] = mean;
  }
}

}  // namespace

class Discovery::State {
 public:
  State(std::vector<std::string> names, std::vector<int> counts, const DiscoveryOptions& settings)
      : hosts(std::move(names)), workers(std::move(counts)), options(settings), random_(settings.seed) {
    if (hosts.empty()) throw InputError("there is no host to discover a network between; expected at least one");
    if (workers.empty()) workers.assign(hosts.size(), 1);
    if (workers.size() != hosts.size()) throw InputError("expected a number of workers for each host");
    model.rack.assign(hosts.size(), 0);
  }

  std::optional<Matching> next() {
    const int done = static_cast<int>(measured.size());
    if (done >= max_matchings(count(), options)) return std::nullopt;
    const int first = std::max(kFirst, tournament());
    if (done < first) return next_of_tournament();
    conclude();
    if (model.racks() <= 1) return done < kFlat ? std::optional(next_of_tournament()) : std::nullopt;
    if (done - std::max(first, stable_since_) >= kStable) return std::nullopt;
    switch (done % 4) {
      case 0:
        return inner_matching();
      case 1:
        return next_of_tournament();
      default:
        return crossing_matching();
    }
  }

  void add(const MeasuredMatching& matching) {
    measured.push_back(matching);
    model_is_fresh_ = false;
  }

  void conclude() {
    if (model_is_fresh_ || measured.empty()) return;
    RackModel found = fit_racks(measured, model.rack);
    if (found.rack != model.rack) stable_since_ = static_cast<int>(measured.size());
    model = std::move(found);
    model_is_fresh_ = true;
  }

  int count() const { return static_cast<int>(hosts.size()); }

  std::vector<std::string> hosts;
  std::vector<int> workers;
  DiscoveryOptions options;
  std::vector<MeasuredMatching> measured;
  RackModel model;

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  std::vector<int> shuffled(std::vector<int> values) {
    for (std::size_t i = values.size(); i-- > 1;) std::swap(values[i], values[index(below(static_cast<int>(i) + 1))]);
    return values;
  }

  static void pair_up(const std::vector<int>& hosts, Matching& matching) {
    for (std::size_t i = 0; i + 1 < hosts.size(); i += 2) matching.emplace_back(hosts[i], hosts[i + 1]);
  }

  // Matchings in which every two hosts meet once.
  int tournament() const { return count() - 1 + count() % 2; }

  // One after another, in a random order of the hosts: the last one stays, the others move on around a circle. With an
  // odd number of hosts, who meets the one that is missing has a rest.
  Matching next_of_tournament() {
    const int seats = tournament();
    if (turn_ % seats == 0) {
      seating_.resize(index(seats) + 1);
      std::iota(seating_.begin(), seating_.end(), 0);
      seating_ = shuffled(std::move(seating_));
    }
    const int shift = turn_++ % seats;
    Matching matching;
    for (int i = 0; i <= seats / 2; ++i) {
      const int a = i == 0 ? seats : (shift + i) % seats;
      const int b = i == 0 ? shift : (shift + seats - i) % seats;
      const std::pair<int, int> pair{seating_[index(a)], seating_[index(b)]};
      if (std::max(pair.first, pair.second) < count()) matching.push_back(pair);
    }
    return matching;
  }

  std::vector<std::vector<int>> shuffled_racks() {
    std::vector<std::vector<int>> racks(index(model.racks()));
    for (int host = 0; host < count(); ++host) racks[index(model.rack[index(host)])].push_back(host);
    for (std::vector<int>& rack : racks) rack = shuffled(std::move(rack));
    return racks;
  }

  // Inside of racks: shows NICs, and racks that are two in truth.
  Matching inner_matching() {
    Matching matching;
    for (const std::vector<int>& rack : shuffled_racks()) pair_up(rack, matching);
    return matching;
  }

  // As many as possible cross: fills the uplinks, and shows who is in the wrong rack.
  Matching crossing_matching() {
    std::vector<std::vector<int>> racks = shuffled_racks();
    Matching matching;
    while (true) {
      const auto largest = std::max_element(racks.begin(), racks.end(),
                                            [](const auto& a, const auto& b) { return a.size() < b.size(); });
      std::vector<std::size_t> others;
      for (std::size_t rack = 0; rack < racks.size(); ++rack) {
        const bool other = racks.begin() + static_cast<std::ptrdiff_t>(rack) != largest;
        if (other) others.insert(others.end(), racks[rack].size(), rack);
      }
      if (others.empty()) {
        pair_up(*largest, matching);
        return matching;
      }
      std::vector<int>& partner = racks[others[index(below(static_cast<int>(others.size())))]];
      matching.emplace_back(largest->back(), partner.back());
      largest->pop_back();
      partner.pop_back();
    }
  }

  std::mt19937 random_;
  std::vector<int> seating_;
  int turn_ = 0;
  bool model_is_fresh_ = false;
  int stable_since_ = 0;
};

Discovery::Discovery(std::vector<std::string> hosts, std::vector<int> workers, const DiscoveryOptions& options)
    : state_(std::make_unique<State>(std::move(hosts), std::move(workers), options)) {}

Discovery::~Discovery() = default;

std::optional<Matching> Discovery::next() { return state_->next(); }

void Discovery::add(const MeasuredMatching& measured) { state_->add(measured); }

int Discovery::max_matchings(int hosts, const DiscoveryOptions& options) {
  if (hosts < 2) return 0;
  return hosts < kSmall || options.flat ? kFew : kMost;
}

namespace {

// The model as a description of switches and hosts. A rack of one host is that host, with the slower of its cables.
Topology topology_of(const RackModel& model, const std::vector<std::string>& names, const std::vector<int>& workers) {
  std::vector<int> size(index(model.racks()), 0);
  std::vector<double> together(size.size(), 0);
  for (std::size_t host = 0; host < names.size(); ++host) {
    ++size[index(model.rack[host])];
    together[index(model.rack[host])] += model.nic[host];
  }
  Topology::SwitchSpec core;
  core.name = switch_name("core", names);
  std::vector<Topology::SwitchSpec> switches{core};
  std::vector<std::string> rack_of(size.size(), core.name);
  for (std::size_t rack = 0; rack < size.size() && size.size() > 1; ++rack) {
    if (size[rack] < 2) continue;
    Topology::SwitchSpec spec;
    spec.name = rack_of[rack] = switch_name(rack_name(static_cast<int>(switches.size()) - 1), names);
    spec.parent = core.name;
    spec.uplink = three_digits(std::min(model.uplink[rack], together[rack]));
    switches.push_back(spec);
  }
  std::vector<Topology::HostSpec> hosts;
  for (std::size_t host = 0; host < names.size(); ++host) {
    const std::size_t rack = index(model.rack[host]);
    Topology::HostSpec spec;
    spec.name = names[host];
    spec.switch_name = rack_of[rack];
    spec.nic = three_digits(size[rack] < 2 ? std::min(model.nic[host], model.uplink[rack]) : model.nic[host]);
    spec.workers = workers[host];
    hosts.push_back(spec);
  }
  return Topology::build(switches, hosts, "discovered network");
}

RackModel flat_model(std::size_t hosts, double nic) {
  RackModel model;
  model.rack.assign(hosts, 0);
  model.nic.assign(hosts, nic);
  model.uplink.assign(1, std::numeric_limits<double>::infinity());
  return model;
}

// The median of all.
double usual_rate(const std::vector<MeasuredMatching>& measured) {
  std::vector<double> rates;
  for (const MeasuredMatching& matching : measured) {
    for (const MeasuredMatching::Rates& pair : matching.rates) {
      for (const Bandwidth rate : {pair.forward, pair.backward}) {
        if (rate.bytes_per_second > 0) rates.push_back(rate.bytes_per_second);
      }
    }
  }
  return rates.empty() ? kUnmeasured : median(std::move(rates));
}

double unexplained_by(const RackModel& model, const std::vector<MeasuredMatching>& measured) {
  std::vector<double> residuals;
  for (const MeasuredMatching& matching : measured) {
    const std::vector<double> expected = expected_rates(model, matching.pairs);
    for (std::size_t i = 0; i < expected.size() && i < matching.rates.size(); ++i) {
      for (const Bandwidth rate : {matching.rates[i].forward, matching.rates[i].backward}) {
        if (rate.bytes_per_second > 0) residuals.push_back(std::abs(expected[i] / rate.bytes_per_second - 1));
      }
    }
  }
  return residuals.empty() ? 0 : median(std::move(residuals));
}

}  // namespace

DiscoveredNetwork Discovery::result() const {
  if (state_->measured.empty()) {
    return {topology_of(flat_model(state_->hosts.size(), kUnmeasured), state_->hosts, state_->workers),
            true,
            0,
            {"nothing was measured; NICs of 10 Gbit/s are assumed."}};
  }
  RackModel model = state_->options.flat ? flat_model(state_->hosts.size(), usual_rate(state_->measured))
                                         : fit_racks(state_->measured, state_->model.rack);
  const double unexplained = unexplained_by(model, state_->measured);
  even_out(model.nic, state_->options.tolerance);
  std::vector<double> uplinks;
  for (const double uplink : model.uplink) uplinks.push_back(std::min(uplink, 1e300));
  even_out(uplinks, state_->options.tolerance);
  for (std::size_t rack = 0; rack < uplinks.size(); ++rack) {
    if (std::isfinite(model.uplink[rack])) model.uplink[rack] = uplinks[rack];
  }
  DiscoveredNetwork network{topology_of(model, state_->hosts, state_->workers), true, unexplained, {}};
  network.flat = network.topology.nodes().size() == state_->hosts.size() + 1;
  network.notes.push_back(
      fmt::format("{} hosts, {}; {} sets of transfers were measured, the median rate differs by {:.0f} % "
                  "from what this network explains.",
                  state_->hosts.size(),
                  network.flat ? std::string("no uplink that limits them")
                               : fmt::format("{} racks", network.topology.nodes().size() - 1 - state_->hosts.size()),
                  state_->measured.size(), 100 * unexplained));
  return network;
}

}  // namespace dssync
