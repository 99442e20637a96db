// c10d as dssync uses it, and the only place that knows in which way versions of PyTorch differ: up to 1.13 a Gloo
// group is a ProcessGroup, since 2.0 it is a Backend.
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>

namespace dssync {

#if TORCH_VERSION_MAJOR >= 2
using ChannelType = c10d::Backend;
#else
using ChannelType = c10d::ProcessGroup;
#endif

using Channel = c10::intrusive_ptr<ChannelType>;  // a process group; operations are matched by their order
using Store = c10::intrusive_ptr<c10d::Store>;
using Work = c10::intrusive_ptr<c10d::Work>;

// A Gloo group whose connections can be cut.
class GlooChannel : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  // What waits in the group fails at once, here and at the other members. Thread-safe.
  void cut();
};

// What c10d and ATen say in an error, without the place in their source and the stack of calls.
std::string plain_message(const std::string& what);

// Whether the engine of a CPU group can sum tensors of this type.
bool can_sum(at::ScalarType type);

}  // namespace dssync
