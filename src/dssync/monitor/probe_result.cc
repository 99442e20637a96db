#include "dssync/monitor/probe_result.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "dssync/base/index.h"
#include "dssync/monitor/raise.h"
#include "dssync/topology/routes.h"

namespace dssync {
namespace {

bool is_of(const ProbeSample& probe, const Topology& topology) {
  return std::min(probe.from, probe.to) >= 0 && std::max(probe.from, probe.to) < topology.workers();
}

std::vector<LinkId> path_of(Rank from, Rank to, const Topology& topology) {
  return route(topology, topology.host_at(topology.position_of(from)), topology.host_at(topology.position_of(to)));
}

}  // namespace

std::vector<double> proven_by_probes(const std::vector<ProbeSample>& probes, const Topology& topology) {
  std::map<std::tuple<int, Rank, Rank>, ProbeSample> transfers;
  for (const ProbeSample& probe : probes) {
    if (!is_of(probe, topology)) continue;
    const auto [at, added] = transfers.try_emplace({probe.turn, probe.from, probe.to}, probe);
    if (!added && probe.seconds < at->second.seconds) at->second = probe;
  }
  struct Crossing {
    double bytes = 0;
    double seconds = 0;
  };
  std::map<std::pair<int, LinkId>, Crossing> together;  // by turn
  std::vector<double> proven(topology.links().size(), 0);
  for (const auto& [place, probe] : transfers) {
    for (const LinkId link : path_of(probe.from, probe.to, topology)) {
      Crossing& crossing = together[{probe.turn, link}];
      crossing.bytes += probe.bytes;
      raise(crossing.seconds, probe.seconds);
      raise(proven[index(link)], probe.bytes / probe.seconds);
    }
  }
  for (const auto& [place, crossing] : together) raise(proven[index(place.second)], crossing.bytes / crossing.seconds);
  return proven;
}

std::vector<SlowTransfer> slow_transfers(const std::vector<ProbeSample>& probes, const Topology& network,
                                         double factor) {
  std::map<std::pair<Rank, Rank>, double> rates;
  for (const ProbeSample& probe : probes) {
    if (is_of(probe, network)) raise(rates[{probe.from, probe.to}], probe.bytes / probe.seconds);
  }
  std::vector<double> sharing(network.links().size(), 0);  // transfers
  for (const auto& [pair, rate] : rates) {
    for (const LinkId link : path_of(pair.first, pair.second, network)) ++sharing[index(link)];
  }
  std::vector<SlowTransfer> slow;
  for (const auto& [pair, rate] : rates) {
    SlowTransfer transfer;
    double share = std::numeric_limits<double>::infinity();
    for (const LinkId link : path_of(pair.first, pair.second, network)) {
      share = std::min(share, network.link(link).capacity.bytes_per_second / sharing[index(link)]);
      transfer.path.push_back({link, rate * sharing[index(link)]});
    }
    if (rate * factor < share) slow.push_back(std::move(transfer));
  }
  return slow;
}

}  // namespace dssync
