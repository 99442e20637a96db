#include <iostream>

#include "dssync/planner/planner.h"
#include "dssync/topology/read.h"

int main() {
  const auto network = dssync::read_topology("examples/topologies/two-racks.yaml");
  dssync::Planner planner(network.topology, 8e6);  // the bytes of the model's parameters
  const auto plan = planner.best(0.5).value();     // the fastest plan whose disagreement S is at most 0.5
  for (const auto& round : plan.rounds) std::cout << round.label << "\n";
  std::cout << plan.cost.seconds_per_iteration << " s per iteration\n";
}
