#include "dssync/runtime/base_synchronizer.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/planner/stages.h"

namespace dssync {
namespace {

void check_size(const World& world, const Topology& topology) {
  if (world.size() == topology.workers()) return;
  throw InputError(fmt::format("the topology has {} workers, but {} are running", topology.workers(), world.size()));
}

std::vector<NamedTensor> summable(const std::vector<NamedTensor>& tensors, bool wanted) {
  std::vector<NamedTensor> result;
  for (const NamedTensor& named : tensors) {
    if (can_sum(named.tensor.scalar_type()) == wanted) result.push_back(named);
  }
  return result;
}

double squared_norm(const at::Tensor& tensor) { return tensor.to(at::kDouble).square().sum().item<double>(); }

}  // namespace

BaseSynchronizer::BaseSynchronizer(World& world, const Replica& replica, const Topology& topology, Timeline* timeline,
                                   const std::vector<std::string>& promises)
    : world_(world), replica_(replica), topology_(topology), engine_(world, timeline), timeline_(timeline) {
  check_size(world, topology);
  world_.agree("options", promises);
  std::vector<std::string> model = describe(replica_.parameters);
  for (const std::string& line : describe(replica_.buffers)) model.push_back("buffer " + line);
  world_.agree("model", model);
  parameters_ = flatten(replica_.parameters);
  adopt_from_rank_0();
}

// Replicas start equal, whatever the workers' seeds.
void BaseSynchronizer::adopt_from_rank_0() {
  if (world_.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const Flat& flat : parameters_) tensors.push_back(flat.vector);
  for (const NamedTensor& buffer : replica_.buffers) tensors.push_back(buffer.tensor);
  take_over_from_rank_0(tensors);
}

void BaseSynchronizer::take_over_from_rank_0(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  const Channel channel = world_.channel(world_.everyone(), "broadcast");
  try {
    for (const at::Tensor& tensor : tensors) {
      std::vector<at::Tensor> sent = {tensor.contiguous()};
      channel->broadcast(sent)->wait();
      if (!tensor.is_contiguous()) tensor.copy_(sent.front());
    }
  } catch (const std::exception& error) {
    throw world_.explain("taking over rank 0's values", world_.everyone(), error.what());
  }
}

const Chain& BaseSynchronizer::everyone() {
  if (everyone_.empty()) {
    ChainBuilder builder(world_, topology_);
    builder.add(lower(world_.everyone(), topology_, model_bytes()), world_.size());
    everyone_ = builder.build();
  }
  return everyone_.front();
}

template <typename Moment>
void BaseSynchronizer::timed(Moment moment) {
  const at::NoGradGuard no_grad;
  const Clock::time_point start = Clock::now();
  moment();
  const Clock::time_point end = Clock::now();
  metrics_.sync_seconds += std::chrono::duration<double>(end - start).count();
}

void BaseSynchronizer::before_forward() {
  metrics_.sync_seconds = metrics_.wait_seconds = 0;
  iteration_start_ = Clock::now();
  timed([this] { on_before_forward(); });
}

void BaseSynchronizer::after_backward() {
  timed([this] { on_after_backward(); });
}

void BaseSynchronizer::after_step() {
  timed([this] { on_after_step(); });
  metrics_.bytes_sent = engine_.take_bytes_sent() + std::exchange(bytes_sent_, 0);
  on_iteration_done(Clock::now() - iteration_start_);
  world_.set_progress(++iteration_);
}

void BaseSynchronizer::wait() {
  const Clock::time_point start = Clock::now();
  engine_.wait();
  const Clock::time_point end = Clock::now();
  metrics_.wait_seconds += std::chrono::duration<double>(end - start).count();
  if (timeline_ != nullptr) {
    timeline_->record({Span::Kind::kWait, "waiting for averages", iteration_, start, end, -1, {}, 0});
  }
}

void BaseSynchronizer::record(const char* stage, Clock::time_point start) {
  if (timeline_ == nullptr) return;
  timeline_->record({Span::Kind::kStage, stage, iteration_, start, Clock::now(), -1, world_.everyone(), bytes_sent_});
}

void BaseSynchronizer::record_change(const std::string& why) {
  if (timeline_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  timeline_->record({Span::Kind::kChange, "new plan: " + why, iteration_, now, now, -1, {}, 0});
}

double BaseSynchronizer::consolidate() {
  const at::NoGradGuard no_grad;
  if (world_.size() == 1) return 0;
  const double waited = metrics_.wait_seconds;
  const double distance = consolidate_parameters();
  average_buffers();
  // This is not part of any iteration.
  metrics_.wait_seconds = waited;
  engine_.take_bytes_sent();
  bytes_sent_ = 0;
  return distance;
}

double BaseSynchronizer::consolidate_parameters() {
  std::vector<at::Tensor> before;
  for (const Flat& flat : parameters_) {
    before.push_back(flat.vector.clone());
    engine_.average(flat.vector, everyone(), iteration_, seconds_for(flat.vector, everyone()));
  }
  wait();
  double distance = 0;
  for (std::size_t index = 0; index < before.size(); ++index) {
    distance += squared_norm(parameters_[index].vector - before[index]);
  }
  return distance;
}

// Running statistics are not used in training, so they are brought together only here. What cannot be averaged (a
// counter of batches) is the same on all workers or rank 0's.
void BaseSynchronizer::average_buffers() {
  std::vector<NamedTensor> copies;
  const std::vector<NamedTensor> floating = summable(replica_.buffers, true);
  for (const auto& [name, tensor] : floating) copies.push_back({name, tensor.clone()});
  const std::vector<Flat> flats = flatten(copies);
  for (const Flat& flat : flats)
    engine_.average(flat.vector, everyone(), iteration_, seconds_for(flat.vector, everyone()));
  wait();
  for (std::size_t index = 0; index < floating.size(); ++index) {
    at::Tensor buffer = floating[index].tensor;
    buffer.copy_(copies[index].tensor);
  }
  std::vector<at::Tensor> others;
  for (const NamedTensor& named : summable(replica_.buffers, false)) others.push_back(named.tensor);
  take_over_from_rank_0(others);
}

}  // namespace dssync
