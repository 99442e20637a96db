// Averages with itself through the installed runtime. Status 0 if it works.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "dssync/sync/synchronizer.h"
#include "dssync/topology/read.h"

int main() {
  const auto world = dssync::World::from_environment();
  const auto network = dssync::read_yaml_topology(
      "switches: [{name: core}]\n"
      "hosts: [{name: alone, switch: core, nic: 1Gbps}]\n",
      "consumer");
  torch::nn::Linear model(3, 2);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto sync = dssync::make_synchronizer(*world, dssync::replica_of(*model, optimizer), network.topology);
  sync->before_forward();
  model(torch::ones({1, 3})).sum().backward();
  sync->after_backward();
  optimizer.step();
  sync->after_step();
  return sync->consolidate() == 0 && sync->iteration() == 1 ? 0 : 1;
}
