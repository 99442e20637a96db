// A network nobody has described, found out by measuring: which transfers to make at once, and what topology explains
// their rates. Pure: whoever uses it makes the transfers. docs/adaptation.md explains the method.
//
//   Discovery discovery(names);
//   while (auto matching = discovery.next()) discovery.add(measure(*matching));
//   const DiscoveredNetwork network = discovery.result();
//
// Finds hosts with NICs of any speeds and one level of racks (of one host or more) below a core that is never the
// bottleneck itself. A network in which no uplink limits anything is called flat. Not thread-safe. Deterministic: every
// worker that is given the same rates asks for the same transfers and finds the same network.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

// Indices of hosts that exchange data, both directions at the same time; each host is in at most one pair.
using Matching = std::vector<std::pair<int, int>>;

// What a matching measured: the rates in the order of its pairs.
struct MeasuredMatching {
  Matching pairs;
  struct Rates {
    Bandwidth forward;   // from the first to the second
    Bandwidth backward;  // while all pairs were under way
  };
  std::vector<Rates> rates;
};

struct DiscoveryOptions {
  unsigned seed = 1;       // of the random matchings
  double tolerance = 0.2;  // rates that differ by less are the same
  bool flat = false;       // there are no racks to be found, and all NICs are alike: a few matchings tell their rate
};

struct DiscoveredNetwork {
  Topology topology;  // switch "core"; racks "rack-a", ... where there are any
  bool flat = true;
  double unexplained = 0;          // median of |measured - explained| / measured
  std::vector<std::string> notes;  // for people, a sentence each
};

class Discovery {
 public:
  // The hosts, in the order of their ranks (one worker each, or `workers[i]`). At least one.
  explicit Discovery(std::vector<std::string> hosts, std::vector<int> workers = {},
                     const DiscoveryOptions& options = {});
  ~Discovery();

  // The transfers to measure next; nothing when enough is known. At most max_matchings(hosts, options) of them.
  std::optional<Matching> next();

  // Of the last matching that next() returned. A rate of 0 means that it was not measured.
  void add(const MeasuredMatching& measured);

  // What explains all rates so far best.
  DiscoveredNetwork result() const;

  // With 0.3 s for each matching, discovery stays below 20 s.
  static int max_matchings(int hosts, const DiscoveryOptions& options = {});

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dssync
