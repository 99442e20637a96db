// The C++ counterpart of ranks/test_cpp_front.py: trains the same model on the same data and writes its parameters.
//
// usage: cpp_front TOPOLOGY sgd|adamw layered|combine|none ITERATIONS FILE
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "dssync/sync/synchronizer.h"
#include "dssync/topology/read.h"

namespace {

torch::Tensor wave(std::int64_t count, double shift) {
  return torch::sin(torch::arange(count, torch::kDouble) * 0.37 + shift).to(torch::kFloat);
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<torch::Tensor>& parameters) {
  if (name == "adamw") return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01));
  return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
}

}  // namespace

int main(int /*argc*/, char** argv) {
  const auto world = dssync::World::from_environment();
  const auto network = dssync::read_topology(argv[1]);
  torch::nn::Sequential model(torch::nn::Linear(20, 30), torch::nn::ReLU(), torch::nn::Linear(30, 3));
  {
    const torch::NoGradGuard no_grad;
    double number = 0;
    for (torch::Tensor& parameter : model->parameters()) {
      parameter.copy_(wave(parameter.numel(), number++).view(parameter.sizes()) * 0.2);
    }
  }
  const auto optimizer = make_optimizer(argv[2], model->parameters());
  dssync::SyncOptions options;
  options.overlap = dssync::overlap_from_name(argv[3]);
  options.disagreement = 2;  // more than the step that averages miss which combine
  const auto sync =
      dssync::make_synchronizer(*world, dssync::replica_of(*model, *optimizer), network.topology, options);
  for (int iteration = 0; iteration < std::stoi(argv[4]); ++iteration) {
    const auto inputs = wave(32 * 20, 1000.0 * world->rank() + iteration).view({32, 20});
    optimizer->zero_grad();
    sync->before_forward();
    torch::cross_entropy_loss(model->forward(inputs), inputs.narrow(1, 0, 3).argmax(1)).backward();
    sync->after_backward();
    optimizer->step();
    sync->after_step();
  }
  sync->settle();
  std::ofstream file(argv[5], std::ios::binary);
  for (const torch::Tensor& parameter : model->parameters()) {
    const auto values = parameter.detach().contiguous();
    file.write(static_cast<const char*>(values.data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  }
  world->barrier("end");  // rank 0 serves the store
}
