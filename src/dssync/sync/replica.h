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

// The step that Adam or AdamW made last for one parameter.
struct AdamStep {
  std::size_t index = 0;  // of the parameter
  at::Tensor parameter{};
  at::Tensor first_moment{};   // exp_avg
  at::Tensor second_moment{};  // exp_avg_sq
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double count = 0;  // steps so far, this one included
};

// Whether an optimizer divides its steps by what it sees of the gradient's size. One that does makes other steps from
// one worker's gradients than from everyone's mean.
enum class Normalizing {
  kNo,       // SGD
  kAdam,     // Adam, AdamW: `adam_steps` tells how
  kUnknown,  // any other way, or none
};

struct Replica {
  std::vector<NamedTensor> parameters;  // those that are trained, each once, in the same order on every worker
  std::vector<NamedTensor> buffers;     // BatchNorm's running statistics and the like
  // The optimizer's state as it is now; asked for now and then, since optimizers make it when they need it. May be
  // empty.
  std::function<std::vector<OptimizerState>()> optimizer_state;
  // Of the step that is being made. May be empty.
  std::function<double()> learning_rate{};
  // Makes the optimizer's step for these parameters (by index) and no others (step_only). May be empty; with it, steps
  // can be made while the backward pass still runs.
  std::function<void(const std::vector<std::size_t>& parameters)> step{};
  // The program asks Synchronizer::before_step() whether to step. If not, gradients whose step has been made are
  // dropped in after_backward(), so that the optimizer's own step does nothing.
  bool asks_before_step = false;
  Normalizing normalizing = Normalizing::kUnknown;
  // Of kAdam: the last steps of these parameters (by index), but for those that have made none.
  std::function<std::vector<AdamStep>(const std::vector<std::size_t>& parameters)> adam_steps{};
  // Whether gradients are complete after one backward pass, asked in before_forward(); empty: they are. Otherwise
  // nobody looks at them before after_backward().
  std::function<bool()> has_one_backward_pass{};
  // Of the parameters and of the optimizer's state.
  Storage storage = Storage::kOwned;
  std::vector<NamedTensor> frozen{};  // parameters that are not trained; rank 0's are everybody's
};

// The parameters (tied ones once; those that require no gradients are frozen), the buffers, and the state of SGD
// (momentum), Adam and AdamW. Both must outlive the replica.
Replica replica_of(torch::nn::Module& model, torch::optim::Optimizer& optimizer);

// Calls `step`, an optimizer's, for the chosen parameters (by index): optimizers skip parameters without a gradient, so
// all other gradients are set aside meanwhile.
void step_only(const std::vector<NamedTensor>& parameters, const std::vector<std::size_t>& chosen,
               const std::function<void()>& step);

}  // namespace dssync
