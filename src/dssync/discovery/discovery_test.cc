// Random networks, measured by a simulation with max-min fairness and noise: are their racks found?
#include "dssync/discovery/discovery.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/base/index.h"
#include "dssync/topology/read.h"
#include "dssync/topology/routes.h"
#include "dssync/topology/testing.h"
#include "dssync/topology/write.h"

namespace dssync {
namespace {

// All rates grow together; who crosses a link that is full stays.
std::vector<double> max_min_rates(const Topology& topology, const std::vector<std::vector<LinkId>>& paths) {
  std::vector<double> left;
  for (const Link& link : topology.links()) left.push_back(link.capacity.bytes_per_second);
  std::vector<double> rates(paths.size(), 0);
  std::vector<bool> settled(paths.size(), false);
  while (std::count(settled.begin(), settled.end(), false) > 0) {
    std::vector<int> users(left.size(), 0);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const LinkId link : paths[i]) users[index(link)] += settled[i] ? 0 : 1;
    }
    double step = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (users[link] > 0 && left[link] / users[link] < step) {
        step = left[link] / users[link];
        full = link;
      }
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (settled[i]) continue;
      rates[i] += step;
      for (const LinkId link : paths[i]) left[index(link)] -= step;
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (const LinkId link : paths[i]) settled[i] = settled[i] || index(link) == full;
    }
  }
  return rates;
}

class Laboratory {
 public:
  Laboratory(const Topology& topology, double noise, unsigned seed)
      : topology_(topology), noise_(noise), random_(seed) {}

  MeasuredMatching measure(const Matching& matching) {
    std::vector<std::vector<LinkId>> paths;
    for (const auto& [a, b] : matching) {
      paths.push_back(route(topology_, host(a), host(b)));
      paths.push_back(route(topology_, host(b), host(a)));
    }
    const std::vector<double> rates = max_min_rates(topology_, paths);
    MeasuredMatching measured{matching, {}};
    for (std::size_t i = 0; i < matching.size(); ++i) {
      measured.rates.push_back({{noisy(rates[2 * i])}, {noisy(rates[2 * i + 1])}});
    }
    return measured;
  }

 private:
  NodeId host(int rank) const { return topology_.host_at(topology_.position_of(rank)); }

  double noisy(double rate) {
    const auto uniform = [this] { return (static_cast<double>(random_()) + 0.5) / 4294967296.0; };
    const double normal = std::sqrt(-2 * std::log(uniform())) * std::cos(6.283185307179586 * uniform());
    return rate * std::exp(noise_ * normal);
  }

  const Topology& topology_;
  double noise_;
  std::mt19937 random_;
};

std::vector<std::string> names_of(const Topology& topology) {
  std::vector<std::string> names;
  for (Rank rank = 0; rank < topology.workers(); ++rank) names.push_back(topology.worker_name(rank));
  return names;
}

// By rank: the first rank on the same switch.
std::vector<Rank> racks_of(const Topology& topology) {
  std::map<NodeId, Rank> first;
  std::vector<Rank> racks;
  for (Rank rank = 0; rank < topology.workers(); ++rank) {
    const NodeId parent = topology.node(topology.host_at(topology.position_of(rank))).parent;
    racks.push_back(first.try_emplace(parent, rank).first->second);
  }
  return racks;
}

DiscoveredNetwork discover(const Topology& topology, double noise, unsigned seed, int* matchings = nullptr) {
  Laboratory laboratory(topology, noise, seed);
  Discovery discovery(names_of(topology));
  int count = 0;
  while (const auto matching = discovery.next()) {
    std::vector<bool> busy(index(topology.workers()), false);
    for (const auto& [a, b] : *matching) {
      EXPECT_FALSE(busy[index(a)] || busy[index(b)] || a == b);
      busy[index(a)] = busy[index(b)] = true;
    }
    discovery.add(laboratory.measure(*matching));
    ++count;
  }
  EXPECT_LE(count, Discovery::max_matchings(topology.workers()));
  if (matchings != nullptr) *matchings = count;
  return discovery.result();
}

// Two to four racks of two or more hosts, 2:1 to 8:1, 8 to 32 hosts in no particular order; with `unequal`, every
// fourth NIC has half the speed.
Topology random_racks(unsigned seed, bool unequal) {
  std::mt19937 random(seed);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const int racks = between(2, 4);
  const int hosts = between(8, 32);
  std::vector<int> rack_of;
  for (int rack = 0; rack < racks; ++rack) rack_of.insert(rack_of.end(), 2, rack);
  const bool even = between(0, 1) == 0;
  while (static_cast<int>(rack_of.size()) < hosts) {
    rack_of.push_back(even ? static_cast<int>(rack_of.size()) % racks : between(0, racks - 1));
  }
  for (std::size_t i = rack_of.size(); i-- > 1;) std::swap(rack_of[i], rack_of[index(between(0, static_cast<int>(i)))]);
  std::vector<double> nics;
  std::vector<double> together(index(racks), 0);
  for (const int rack : rack_of) {
    nics.push_back(unequal && between(0, 3) == 0 ? 12.5e6 : 25e6);
    together[index(rack)] += nics.back();
  }
  const double oversubscription = 2 + 0.1 * between(0, 60);
  std::vector<Topology::SwitchSpec> switches{testing::make_switch("core", "", 0)};
  for (int rack = 0; rack < racks; ++rack) {
    switches.push_back(
        testing::make_switch("r" + std::to_string(rack), "core", together[index(rack)] / oversubscription));
  }
  std::vector<Topology::HostSpec> specs;
  for (std::size_t host = 0; host < rack_of.size(); ++host) {
    specs.push_back(testing::make_host("h" + std::to_string(host), "r" + std::to_string(rack_of[host]), nics[host]));
  }
  return Topology::build(switches, specs, "random racks");
}

// How many of the networks have their racks found; says which have not.
int found_of(int networks, bool unequal, double noise) {
  int found = 0;
  for (unsigned seed = 1; seed <= static_cast<unsigned>(networks); ++seed) {
    const Topology topology = random_racks(seed, unequal);
    const bool right = racks_of(discover(topology, noise, seed).topology) == racks_of(topology);
    if (!right) std::printf("not found: seed %u\n%s", seed, write_yaml_topology(topology).c_str());
    found += right ? 1 : 0;
  }
  return found;
}

TEST(DiscoveryTest, FindsTheRacksOfRandomNetworks) { EXPECT_EQ(found_of(200, false, 0.05), 200); }

TEST(DiscoveryTest, FindsRacksOfUnequalHosts) { EXPECT_GE(found_of(100, true, 0.05), 99); }

TEST(DiscoveryTest, FindsRacksThroughMoreNoise) { EXPECT_GE(found_of(50, false, 0.1), 48); }

TEST(DiscoveryTest, CallsFlatNetworksFlat) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const Topology topology = testing::flat(8 + static_cast<int>(seed % 25), 25e6);
    EXPECT_TRUE(discover(topology, 0.05, seed).flat) << "seed " << seed;
  }
}

TEST(DiscoveryTest, SlowHostsAreNoRack) {
  std::vector<double> nics(12, 25e6);
  nics[3] = nics[7] = 5e6;
  const DiscoveredNetwork found = discover(testing::hosts_with_nics(nics), 0.05, 1);
  EXPECT_TRUE(found.flat);
  for (int rank = 0; rank < 12; ++rank) {
    const Node& host = found.topology.node(found.topology.host_at(found.topology.position_of(rank)));
    EXPECT_NEAR(found.topology.link(host.up).capacity.bytes_per_second, nics[index(rank)], 0.1 * nics[index(rank)]);
  }
}

TEST(DiscoveryTest, MeasuresCapacities) {
  for (const double oversubscription : {2.0, 4.0, 8.0}) {
    const Topology topology = testing::racks(3, 6, 25e6, 6 * 25e6 / oversubscription);
    const DiscoveredNetwork found = discover(topology, 0.05, 3);
    ASSERT_EQ(racks_of(found.topology), racks_of(topology));
    EXPECT_LT(found.unexplained, 0.08);
    for (const Node& node : found.topology.nodes()) {
      if (node.up == kNone) continue;
      const double expected = node.kind == Node::Kind::kHost ? 25e6 : 6 * 25e6 / oversubscription;
      EXPECT_NEAR(found.topology.link(node.up).capacity.bytes_per_second, expected, 0.1 * expected) << node.name;
    }
  }
}

TEST(DiscoveryTest, ItsResultIsATopologyFile) {
  const DiscoveredNetwork found = discover(testing::racks(2, 4, 25e6, 25e6), 0.05, 1);
  const Topology read = read_yaml_topology(write_yaml_topology(found.topology), "discovered").topology;
  EXPECT_EQ(racks_of(read), racks_of(found.topology));
  EXPECT_EQ(read.links().size(), found.topology.links().size());
}

TEST(DiscoveryTest, TheSameRatesGiveTheSameNetwork) {
  const Topology topology = random_racks(5, true);
  EXPECT_EQ(write_yaml_topology(discover(topology, 0.05, 9).topology),
            write_yaml_topology(discover(topology, 0.05, 9).topology));
}

TEST(DiscoveryTest, StaysWithinItsTime) {
  for (const int hosts : {8, 16, 32}) EXPECT_LT(0.3 * Discovery::max_matchings(hosts), 20);
}

TEST(DiscoveryTest, FewHostsAreFlat) {
  for (const int hosts : {1, 2, 3}) {
    const DiscoveredNetwork found = discover(testing::flat(hosts, 25e6), 0.05, 1);
    EXPECT_TRUE(found.flat);
    EXPECT_EQ(found.topology.workers(), hosts);
  }
  EXPECT_THROW(Discovery({}), InputError);
}

TEST(DiscoveryTest, NothingMeasuredIsSaid) {
  const DiscoveredNetwork found = Discovery({"alone"}).result();
  EXPECT_EQ(found.topology.link(0).capacity, parse_bandwidth("10Gbps"));
  EXPECT_THAT(found.notes, ::testing::ElementsAre(::testing::HasSubstr("nothing was measured")));
}

TEST(DiscoveryTest, WhatIsFlatBeforehandTakesFewMatchings) {
  const Topology noisy = testing::hosts_with_nics({10e6, 30e6, 20e6, 25e6, 20e6, 15e6});
  Laboratory laboratory(noisy, 0.05, 1);
  const DiscoveryOptions options{.flat = true};
  Discovery discovery(names_of(noisy), {}, options);
  int count = 0;
  for (; const auto matching = discovery.next(); ++count) discovery.add(laboratory.measure(*matching));
  EXPECT_EQ(count, Discovery::max_matchings(6, options));
  EXPECT_LT(count, 5);
  EXPECT_THAT(write_yaml_topology(discovery.result().topology), ::testing::HasSubstr("\"h[0-5]\", switch: \"core\""));
}

TEST(DiscoveryTest, RatesHaveThreeDigits) {
  Discovery discovery({"a", "b"});
  discovery.add({*discovery.next(), {{{12.3456e6}, {12.3456e6}}}});
  EXPECT_THAT(write_yaml_topology(discovery.result().topology), ::testing::HasSubstr("nic: 98.8Mbps"));
}

TEST(DiscoveryTest, HostsKeepTheirNames) {
  const Topology racks = testing::racks(2, 4, 25e6, 25e6);
  Laboratory laboratory(racks, 0.05, 1);
  Discovery discovery({"core", "rack-a", "c", "d", "e", "f", "g", "h"});
  while (const auto matching = discovery.next()) discovery.add(laboratory.measure(*matching));
  const Topology topology = discovery.result().topology;
  EXPECT_EQ(topology.worker_name(0), "core");
  EXPECT_EQ(topology.worker_name(1), "rack-a");
  EXPECT_EQ(topology.node(topology.root()).name, "core-switch");
}

// No transfer is faster than its NICs, but it may seem to be faster than its uplinks.
TEST(DiscoveryTest, OneWrongMatchingDoesNotMatter) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Topology topology = random_racks(seed, false);
    Laboratory laboratory(topology, 0.05, seed);
    Discovery discovery(names_of(topology));
    for (unsigned count = 0; const auto matching = discovery.next(); ++count) {
      MeasuredMatching measured = laboratory.measure(*matching);
      for (MeasuredMatching::Rates& rates : measured.rates) {
        if (count == seed % 12) rates.forward = rates.backward = {std::min(2 * rates.forward.bytes_per_second, 25e6)};
      }
      discovery.add(measured);
    }
    EXPECT_EQ(racks_of(discovery.result().topology), racks_of(topology)) << "seed " << seed;
  }
}

TEST(DiscoveryTest, DoesWithoutSomeRates) {
  const Topology topology = testing::racks(2, 6, 25e6, 37.5e6);
  Laboratory laboratory(topology, 0.05, 1);
  Discovery discovery(names_of(topology));
  std::mt19937 random(4);
  while (const auto matching = discovery.next()) {
    MeasuredMatching measured = laboratory.measure(*matching);
    for (MeasuredMatching::Rates& rates : measured.rates) {
      if (random() % 10 == 0) rates = {};
    }
    discovery.add(measured);
  }
  EXPECT_EQ(racks_of(discovery.result().topology), racks_of(topology));
}

}  // namespace
}  // namespace dssync
