// What is kept in sync: the tensors of one worker's model and optimizer. Plain values; tensors are shared, not copied.
#pragma once

#include <functional>
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

// Whether averages work on the tensors themselves, which become views into larger ones, or on copies of them
// (tensor_set.h).
enum class Storage { kOwned, kBorrowed };

struct Replica {
  std::vector<NamedTensor> parameters;  // those that are trained, each once, in the same order on every worker
  std::vector<NamedTensor> buffers;     // BatchNorm's running statistics and the like
  // The optimizer's state as it is now; asked for now and then, since optimizers make it when they need it. May be
  // empty.
  std::function<std::vector<OptimizerState>()> optimizer_state;
  // Of the step that is being made. May be empty.
  std::function<double()> learning_rate{};
  // Of the parameters and of the optimizer's state.
  Storage storage = Storage::kOwned;
  std::vector<NamedTensor> frozen{};  // parameters that are not trained; rank 0's are everybody's
};

// The parameters (tied ones once; those that require no gradients are frozen), the buffers, and the state of SGD
// (momentum), Adam and AdamW. Both must outlive the replica.
Replica replica_of(torch::nn::Module& model, torch::optim::Optimizer& optimizer);

}  // namespace dssync
