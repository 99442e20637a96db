// Figures that workers share beside training, and probes of the network, in a process group of all workers that nothing
// else uses. Not thread-safe: one thread, on every worker the same calls in the same order. Throws what c10d throws.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/base/interface_bytes.h"
#include "dssync/comm/world.h"
#include "dssync/monitor/probe.h"
#include "dssync/monitor/sample.h"

namespace dssync {

class SideChannel {
 public:
  // Collective. Tensors on `device` are what its process group moves.
  SideChannel(World& world, at::Device device);
  SideChannel(const SideChannel&) = delete;
  SideChannel& operator=(const SideChannel&) = delete;

  // What waits in it fails, here and at the other workers, and so does what comes later. Thread-safe.
  void give_up() { cut(*channel_); }

  // What every worker gave, by rank. Lengths may differ.
  std::vector<std::vector<double>> gather(const std::vector<double>& own);

  // Makes the transfers, all at once. Returns what this worker sent: nothing, or one transfer by turns.
  std::vector<ProbeSample> run(const Probe& probe, std::int64_t iteration);

  // All that probes have brought from and to this worker so far. Thread-safe.
  InterfaceBytes probed() const { return {received_, sent_}; }

 private:
  at::Tensor padded(const std::vector<double>& values, std::size_t size) const;
  std::vector<at::Tensor> gather(const at::Tensor& own);
  void receive(const ProbeTransfer& transfer, int turns);
  std::vector<ProbeSample> send(const ProbeTransfer& transfer, int turns, std::int64_t iteration);

  Rank rank_;
  int size_;
  at::Device device_;
  Channel channel_;
  std::size_t longest_ = 1;                 // row so far, with its length; the same on all workers
  std::atomic<std::uint64_t> received_{0};  // by probes
  std::atomic<std::uint64_t> sent_{0};
};

}  // namespace dssync
