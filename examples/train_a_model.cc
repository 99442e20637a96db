#include <iostream>

#include <torch/torch.h>

#include "dssync/sync/synchronizer.h"
#include "dssync/topology/read.h"

int main() {
  const auto world = dssync::World::from_environment();  // as torchrun, mpirun or srun started this worker
  const auto network = dssync::read_topology("examples/topologies/two-racks.yaml");
  torch::nn::Linear model(20, 3);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto sync = dssync::make_synchronizer(*world, dssync::replica_of(*model, optimizer), network.topology);
  torch::Tensor loss;
  for (int iteration = 0; iteration < 100; ++iteration) {
    const auto inputs = torch::randn({32, 20});  // this worker's batch
    const auto labels = inputs.narrow(1, 0, 3).argmax(1);
    optimizer.zero_grad();
    sync->before_forward();
    loss = torch::cross_entropy_loss(model(inputs), labels);
    loss.backward();
    sync->after_backward();
    optimizer.step();
    sync->after_step();
  }
  sync->consolidate();  // one model on all workers
  if (world->rank() == 0) std::cout << "loss " << loss.item<float>() << "\n";
}
