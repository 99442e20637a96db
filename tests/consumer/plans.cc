// Uses something of each installed module that needs no PyTorch. Status 0 if it works.
#include <iostream>

#include "dssync/base/units.h"
#include "dssync/base/version.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/read.h"

int main() {
  const auto network = dssync::read_yaml_topology(
      "switches: [{name: core}]\n"
      "hosts: [{name: \"h[0-3]\", switch: core, nic: 1Gbps}]\n",
      "consumer");
  dssync::Planner planner(network.topology, static_cast<double>(dssync::parse_bytes("8MB")));
  const auto plan = planner.best(0.5);
  std::cout << "dssync " << dssync::kVersion << ": " << network.topology.workers() << " workers\n";
  return plan.has_value() && network.topology.workers() == 4 ? 0 : 1;
}
