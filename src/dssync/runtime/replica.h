// What is kept in sync: the tensors of one worker's model and optimizer. Plain values; tensors are shared, not copied.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace dssync {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// One kind of state that an optimizer keeps per parameter, such as "momentum_buffer". Parameters without it are left
// out. The tensors must be those that the optimizer itself updates in place.
struct OptimizerState {
  std::string name;
  std::vector<NamedTensor> tensors;  // named for their parameters
};

struct Replica {
  std::vector<NamedTensor> parameters;  // those that are trained, each once, in the same order on every worker
  std::vector<NamedTensor> buffers;     // BatchNorm's running statistics and the like
  // The optimizer's state as it is now; called after its first step. May be empty. Nothing: ask again after the next
  // step, as on all other workers.
  std::function<std::optional<std::vector<OptimizerState>>()> optimizer_state;
  // Of the step that is being made. May be empty.
  std::function<double()> learning_rate{};
};

// The parameters that require gradients (tied ones once), the buffers, and the state of SGD (momentum), Adam and AdamW.
// Both must outlive the replica.
Replica replica_of(torch::nn::Module& model, torch::optim::Optimizer& optimizer);

}  // namespace dssync
