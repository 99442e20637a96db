// Which racks explain the measured rates? Internal to discovery. Pure.
#pragma once

#include <vector>

#include "dssync/discovery/discovery.h"

namespace dssync {

// Hosts with NICs, in racks with uplinks below a core. In each matching the transfers share uplinks max-min fairly.
struct RackModel {
  std::vector<int> rack;       // by host; numbered from 0 in the order of their first hosts
  std::vector<double> nic;     // by host, bytes per second
  std::vector<double> uplink;  // by rack; infinite where nothing ever filled it
  double misfit = 0;           // robust squared residuals in units of the expected noise, plus a price for every rack

  int racks() const { return static_cast<int>(uplink.size()); }
};

// The best model of all, as far as a local search from this division (and from a few others) finds it.
RackModel fit_racks(const std::vector<MeasuredMatching>& matchings, const std::vector<int>& start);

// By pair of the matching: the mean of both directions that the model expects.
std::vector<double> expected_rates(const RackModel& model, const Matching& pairs);

}  // namespace dssync
