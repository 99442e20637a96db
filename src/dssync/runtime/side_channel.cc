#include "dssync/runtime/side_channel.h"

#include <algorithm>
#include <future>
#include <thread>

#include <ATen/ATen.h>

#include "dssync/runtime/timeline.h"

namespace dssync {
namespace {

// A probe: the receiver is ready, the bytes, the receiver has them.
enum Tag { kReady, kBytes, kDone };

}  // namespace

SideChannel::SideChannel(World& world, at::Device device)
    : rank_(world.rank()),
      size_(world.size()),
      device_(device),
      channel_(world.channel(world.everyone(), world.unique("beside training"))) {}

// Gloo does not notice that a connection was cut here before an operation began, and waits for its timeout.
void SideChannel::give_up() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  constexpr std::chrono::milliseconds kToBegin{20};  // for what has been handed to Gloo's threads
  std::this_thread::sleep_for(kToBegin);
  cut(*channel_);
}

template <typename Start>
void SideChannel::complete(Start start) {
  Work work;
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) throw Error("given up");
    work = start();
  }
  work->wait();
}

at::Tensor SideChannel::padded(const std::vector<double>& values, std::int64_t size) const {
  at::Tensor tensor = at::zeros({size}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  return tensor.to(device_);
}

std::vector<at::Tensor> SideChannel::gather(const at::Tensor& own) {
  std::vector<at::Tensor> input = {own};
  std::vector<std::vector<at::Tensor>> output(1);
  for (int rank = 0; rank < size_; ++rank) output.front().push_back(at::empty_like(own));
  complete([&] { return channel_->allgather(output, input); });
  for (at::Tensor& tensor : output.front()) tensor = tensor.cpu();
  return output.front();
}

std::vector<std::vector<double>> SideChannel::gather(const std::vector<double>& own) {
  std::vector<std::int64_t> sizes;
  for (const at::Tensor& size : gather(padded({static_cast<double>(own.size())}, 1))) {
    sizes.push_back(static_cast<std::int64_t>(size.item<double>()));
  }
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::vector<double>> all;
  for (const at::Tensor& values : gather(padded(own, std::max<std::int64_t>(1, longest)))) {
    const double* first = values.data_ptr<double>();
    all.emplace_back(first, first + sizes[all.size()]);
  }
  return all;
}

std::vector<ProbeSample> SideChannel::run(const Probe& probe, std::int64_t iteration) {
  std::future<void> receiving;
  for (const ProbeTransfer& transfer : probe.transfers) {
    if (transfer.to == rank_) receiving = std::async(std::launch::async, [this, transfer] { receive(transfer); });
  }
  std::vector<ProbeSample> samples;
  for (const ProbeTransfer& transfer : probe.transfers) {
    if (transfer.from == rank_) samples.push_back(send(transfer, iteration));
  }
  if (receiving.valid()) receiving.get();
  return samples;
}

void SideChannel::receive(const ProbeTransfer& transfer) {
  std::vector<at::Tensor> token = {at::zeros({1}, at::TensorOptions(at::kByte).device(device_))};
  std::vector<at::Tensor> bytes = {
      at::empty({static_cast<std::int64_t>(transfer.bytes)}, at::TensorOptions(at::kByte).device(device_))};
  complete([&] { return channel_->send(token, transfer.from, kReady); });
  complete([&] { return channel_->recv(bytes, transfer.from, kBytes); });
  complete([&] { return channel_->send(token, transfer.from, kDone); });
}

ProbeSample SideChannel::send(const ProbeTransfer& transfer, std::int64_t iteration) {
  std::vector<at::Tensor> token = {at::zeros({1}, at::TensorOptions(at::kByte).device(device_))};
  std::vector<at::Tensor> bytes = {
      at::zeros({static_cast<std::int64_t>(transfer.bytes)}, at::TensorOptions(at::kByte).device(device_))};
  complete([&] { return channel_->recv(token, transfer.to, kReady); });
  const Clock::time_point start = Clock::now();
  complete([&] { return channel_->send(bytes, transfer.to, kBytes); });
  complete([&] { return channel_->recv(token, transfer.to, kDone); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return {iteration, transfer.from, transfer.to, transfer.bytes, seconds};
}

}  // namespace dssync
