// Which cables no measurement can tell apart, and who is behind each. Internal to the monitor. Immutable; thread-safe.
//
// A cable is the two links between a node and its parent; they have neighbouring numbers, the lower one even.
#pragma once

#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

class Cables {
 public:
  explicit Cables(const Topology& topology);

  // Whether the cables of these links are crossed together by every path: those of a switch and of the only part below
  // it, and those of the only two parts of the root. A cable is in series with itself.
  bool in_series(LinkId a, LinkId b) const { return at(a).series == at(b).series; }

  // Workers on the smaller side of the link's cable.
  int workers_behind(LinkId link) const { return at(link).workers; }

 private:
  struct Cable {
    int workers = 0;
    int series = 0;  // the first cable that all its paths cross, too
  };

  const Cable& at(LinkId link) const { return cables_[static_cast<std::size_t>(link / 2)]; }
  Cable& at(LinkId link) { return cables_[static_cast<std::size_t>(link / 2)]; }

  std::vector<Cable> cables_;  // by LinkId / 2
};

}  // namespace dssync
