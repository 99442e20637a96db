// From the samples of simulated training runs to capacities.
#include "dssync/monitor/link_monitor.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/monitor/testing.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::SimulationOptions;
using testing::TrainingSimulation;
using testing::with_links;

constexpr double kBytes = 8e6;

// A plan for a network as the user describes it, running on whatever the network truly is.
struct Watch {
  Watch(const Topology& nominal, const SimulationOptions& options = {}, double disagreement = 0.5)
      : plan(*Planner(nominal, kBytes).best(disagreement)),
        table(std::make_shared<StageTable>(plan.rounds, plan.shards, nominal, kBytes)),
        simulation(nominal, kBytes, options),
        monitor(nominal) {
    simulation.adopt(table);
    monitor.adopt(0, table);
  }

  void run(int batches, int iterations = 3) {
    for (int batch = 0; batch < batches; ++batch) {
      SampleBatch samples;
      for (int i = 0; i < iterations; ++i) simulation.run(iteration++, samples);
      monitor.add(samples);
    }
  }

  double megabits(const std::string& name) const {
    for (std::size_t link = 0; link < monitor.estimates().size(); ++link) {
      if (monitor.nominal().links()[link].name == name) {
        return monitor.estimates()[link].capacity.bytes_per_second / 125e3;
      }
    }
    return 0;
  }

  std::vector<std::string> slow_links() const {
    std::vector<std::string> names;
    for (std::size_t link = 0; link < monitor.estimates().size(); ++link) {
      if (monitor.estimates()[link].slow_since >= 0) names.push_back(monitor.nominal().links()[link].name);
    }
    return names;
  }

  Plan plan;
  std::shared_ptr<const StageTable> table;
  TrainingSimulation simulation;
  LinkMonitor monitor;
  std::int64_t iteration = 0;
};

}  // namespace
}  // namespace dssync
