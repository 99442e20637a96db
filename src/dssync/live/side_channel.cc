#include "dssync/live/side_channel.h"

#include <algorithm>
#include <future>

#include <ATen/ATen.h>

#include "dssync/collective/timeline.h"

namespace dssync {
namespace {

// A probe: the receiver is ready; then, in every turn, the bytes, and the receiver has them.
enum Tag { kReady, kBytes, kDone };

constexpr int kMostAtOnce = 16;  // workers; more would put too much on what they share

}  // namespace

SideChannel::SideChannel(World& world, at::Device device)
    : rank_(world.rank()),
      size_(world.size()),
      device_(device),
      channel_(world.channel(world.everyone(), world.unique("beside training"))) {}

// A longer row is cut off.
at::Tensor SideChannel::padded(const std::vector<double>& values, std::size_t size) const {
  at::Tensor tensor = at::zeros({static_cast<std::int64_t>(size)}, at::kDouble);
  std::copy_n(values.begin(), std::min(size, values.size()), tensor.data_ptr<double>());
  return tensor.to(device_);
}

// Everybody's tensor, by rank. A ring needs as many steps as there are others, and on a network that is full each of
// them waits in its queues; few workers rather send everything to everyone at once.
std::vector<at::Tensor> SideChannel::gather(const at::Tensor& own) {
  if (size_ <= kMostAtOnce) {
    at::Tensor input = own.repeat({size_});
    at::Tensor output = at::empty_like(input);
    std::vector<std::int64_t> equal;
    channel_->alltoall_base(output, input, equal, equal)->wait();
    return output.cpu().chunk(size_);
  }
  std::vector<at::Tensor> input = {own};
  std::vector<std::vector<at::Tensor>> output(1);
  for (int rank = 0; rank < size_; ++rank) output.front().push_back(at::empty_like(own));
  channel_->allgather(output, input)->wait();
  for (at::Tensor& tensor : output.front()) tensor = tensor.cpu();
  return output.front();
}

// Each row starts with its length. Rows that are no longer than any before need one step.
std::vector<std::vector<double>> SideChannel::gather(const std::vector<double>& own) {
  std::vector<double> row = {static_cast<double>(own.size())};
  row.insert(row.end(), own.begin(), own.end());
  std::vector<at::Tensor> rows = gather(padded(row, longest_));
  double longest = 0;
  for (const at::Tensor& other : rows) longest = std::max(longest, other.data_ptr<double>()[0] + 1);
  if (static_cast<std::size_t>(longest) > longest_) {
    longest_ = static_cast<std::size_t>(longest);
    rows = gather(padded(row, longest_));
  }
  std::vector<std::vector<double>> all;
  for (const at::Tensor& other : rows) {
    const double* first = other.data_ptr<double>();
    all.emplace_back(first + 1, first + 1 + static_cast<std::ptrdiff_t>(*first));
  }
  return all;
}

std::vector<ProbeSample> SideChannel::run(const Probe& probe, std::int64_t iteration) {
  std::future<void> receiving;
  for (const ProbeTransfer& transfer : probe.transfers) {
    if (transfer.to != rank_) continue;
    receiving = std::async(std::launch::async, [this, transfer, turns = probe.turns] { receive(transfer, turns); });
  }
  std::vector<ProbeSample> samples;
  for (const ProbeTransfer& transfer : probe.transfers) {
    if (transfer.from == rank_) samples = send(transfer, probe.turns, iteration);
  }
  if (receiving.valid()) receiving.get();
  return samples;
}

void SideChannel::receive(const ProbeTransfer& transfer, int turns) {
  std::vector<at::Tensor> token = {at::zeros({1}, at::TensorOptions(at::kByte).device(device_))};
  std::vector<at::Tensor> bytes = {
      at::empty({static_cast<std::int64_t>(transfer.bytes)}, at::TensorOptions(at::kByte).device(device_))};
  channel_->send(token, transfer.from, kReady)->wait();
  for (int turn = 0; turn < turns; ++turn) {
    channel_->recv(bytes, transfer.from, kBytes)->wait();
    received_ += static_cast<std::uint64_t>(transfer.bytes);
    channel_->send(token, transfer.from, kDone)->wait();
  }
}

std::vector<ProbeSample> SideChannel::send(const ProbeTransfer& transfer, int turns, std::int64_t iteration) {
  std::vector<at::Tensor> token = {at::zeros({1}, at::TensorOptions(at::kByte).device(device_))};
  std::vector<at::Tensor> bytes = {
      at::zeros({static_cast<std::int64_t>(transfer.bytes)}, at::TensorOptions(at::kByte).device(device_))};
  std::vector<ProbeSample> samples;
  channel_->recv(token, transfer.to, kReady)->wait();
  for (int turn = 0; turn < turns; ++turn) {
    const Clock::time_point start = Clock::now();
    channel_->send(bytes, transfer.to, kBytes)->wait();
    channel_->recv(token, transfer.to, kDone)->wait();
    sent_ += static_cast<std::uint64_t>(transfer.bytes);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    samples.push_back({iteration, transfer.from, transfer.to, transfer.bytes, seconds, turn});
  }
  return samples;
}

}  // namespace dssync
