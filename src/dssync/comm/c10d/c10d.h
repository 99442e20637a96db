// c10d as dssync uses it, and the only place that knows in which way versions of PyTorch differ: up to 1.13 a process
// group is a ProcessGroup; since 2.0 it is a Backend, and PyTorch comes without Gloo's headers, so that C++ can use
// Gloo groups but not make them.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
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

// Makes and connects a process group whose `size` members meet in `store`; this worker is number `index`.
using GroupMaker = std::function<Channel(const Store& store, int index, int size)>;

// Operations of one group that run side by side: Gloo's threads. (python/dssync/_joining.py makes its groups likewise.)
inline constexpr int kChannelThreads = 4;

// A process group that knows how to be cut.
class Cuttable {
 public:
  virtual ~Cuttable() = default;
  virtual void cut() = 0;
};

// Makes Gloo groups that share one device, and so one thread and one listening port: of the interface that
// GLOO_SOCKET_IFNAME names, or of `address`. Throws Error where this PyTorch has no Gloo for C++.
GroupMaker gloo_groups(const std::string& address, std::chrono::milliseconds timeout);

// What waits in the group fails at once, here and at the other members; the group is of no use afterwards. A World's
// channels always can (cuttable_group.h); where PyTorch is older than 2, it does nothing to other groups that are not
// Cuttable. Takes milliseconds. Thread-safe.
void cut(ChannelType& channel);
// The same for each of them. One that throws is broken already, which is what was asked for.
void cut_all(const std::vector<Channel>& channels) noexcept;

// What c10d and ATen say in an error, without the place in their source and the stack of calls.
std::string plain_message(const std::string& what);

// Whether the engine of a CPU group can sum tensors of this type.
bool can_sum(at::ScalarType type);

}  // namespace dssync
