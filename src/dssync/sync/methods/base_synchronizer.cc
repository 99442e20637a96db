#include "dssync/sync/methods/base_synchronizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/version.h"
#include "dssync/planner/stages.h"

namespace dssync {
namespace {

void check_size(const World& world, const Topology& topology) {
  if (world.size() == topology.workers()) return;
  throw InputError(fmt::format("the topology has {} workers, but {} are running", topology.workers(), world.size()));
}

// What two workers must have in common to understand each other: a line for each option that the method looks at.
std::vector<std::string> promises_of(const SyncOptions& options) {
  std::vector<std::string> lines = {fmt::format("dssync {}", kVersion),
                                    fmt::format("method {}", name_of(options.method))};
  for (const auto& [name, value] : values_of(options)) lines.push_back(fmt::format("{} {}", name, text_of(value)));
  return lines;
}

std::vector<NamedTensor> summable(const std::vector<NamedTensor>& tensors, bool wanted) {
  std::vector<NamedTensor> result;
  for (const NamedTensor& named : tensors) {
    if (can_sum(named.tensor.scalar_type()) == wanted) result.push_back(named);
  }
  return result;
}

// The groups of this worker in which values are handed on, from the root of the network to its host: in each, one
// worker of every part below a switch (or of a host), the lowest rank first, who has them already. So every cable is
// crossed once.
std::vector<Group> relays_of(Rank rank, const Topology& topology) {
  const auto lowest = [&topology](int first, int count) {
    Rank least = topology.rank_at(first);
    for (int position = first; position < first + count; ++position) {
      least = std::min(least, topology.rank_at(position));
    }
    return least;
  };
  std::vector<Group> relays;
  const int own = topology.position_of(rank);
  for (NodeId at = topology.root(); at != kNone;) {
    const Node& node = topology.node(at);
    NodeId next = kNone;
    Group group;
    for (const NodeId id : node.children) {
      const Node& child = topology.node(id);
      if (child.count == 0) continue;
      group.push_back(lowest(child.first, child.count));
      if (own >= child.first && own < child.first + child.count) next = id;
    }
    if (node.kind == Node::Kind::kHost) {
      for (int position = node.first; position < node.first + node.count; ++position) {
        group.push_back(topology.rank_at(position));
      }
    }
    std::sort(group.begin(), group.end());
    if (group.size() > 1 && std::binary_search(group.begin(), group.end(), rank)) relays.push_back(group);
    at = next;
  }
  return relays;
}

// From the group's first member to all others. As bytes: c10d cannot send every type.
void hand_on(const at::Tensor& tensor, ChannelType& channel) {
  if (tensor.numel() == 0) return;
  const at::Tensor values = tensor.detach().contiguous();
  std::vector<at::Tensor> bytes = {values.view({-1}).view(at::kByte)};
  channel.broadcast(bytes)->wait();
  if (!values.is_alias_of(tensor)) tensor.detach().copy_(values);
}

double squared_norm(const at::Tensor& tensor) { return tensor.to(at::kDouble).square().sum().item<double>(); }

}  // namespace

BaseSynchronizer::BaseSynchronizer(World& world, const Replica& replica, const Topology& topology, Timeline* timeline,
                                   const SyncOptions& options)
    : world_(world),
      replica_(replica),
      topology_(topology),
      engine_(explained_by(world), timeline),
      timeline_(timeline) {
  check_size(world, topology);
  world_.agree("options", promises_of(options));
  world_.agree_on(topology);
  std::vector<std::string> model = describe(replica_.parameters);
  for (const std::string& line : describe(replica_.buffers)) model.push_back("buffer " + line);
  for (const std::string& line : describe(replica_.frozen)) model.push_back("frozen " + line);
  world_.agree("model", model);
  parameters_ = TensorSet(replica_.parameters, replica_.storage);
  adopt_from_rank_0();
  if (!replica_.buffers.empty()) everyone();  // for consolidate(): groups are connected before the first iteration
}

// Replicas start equal, whatever the workers' seeds.
void BaseSynchronizer::adopt_from_rank_0() {
  if (world_.size() == 1) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const Flat& flat : parameters_.flats()) tensors.push_back(flat.vector);
  for (const NamedTensor& buffer : replica_.buffers) tensors.push_back(buffer.tensor);
  for (const NamedTensor& frozen : replica_.frozen) tensors.push_back(frozen.tensor);
  take_over_from_rank_0(tensors);
  parameters_.scatter();
}

void BaseSynchronizer::take_over_from_rank_0(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  for (const Group& relay : relays_of(world_.rank(), topology_)) {
    const Channel channel = world_.channel(relay, "broadcast");
    try {
      for (const at::Tensor& tensor : tensors) hand_on(tensor, *channel);
    } catch (const std::exception& error) {
      const PeerError explained = world_.explain("taking over rank 0's values", relay, error.what());
      world_.abandon_channels();  // those to whom this worker hands values on wait for them
      throw explained;
    }
  }
}

const std::shared_ptr<const Chain>& BaseSynchronizer::everyone() {
  if (!everyone_) {
    ChainBuilder builder(world_, topology_);
    builder.add(lower(world_.everyone(), topology_, model_bytes()), world_.size());
    everyone_ = std::make_shared<const Chain>(builder.build().front());
  }
  return everyone_;
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

double BaseSynchronizer::clip_gradients(double max_norm) {
  if (!(max_norm > 0)) throw InputError(fmt::format("clipping: expected a norm above 0, but found {}", max_norm));
  on_gradients_needed();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& parameter : replica_.parameters) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  double own = 0;
  for (const at::Tensor& gradient : gradients) own += squared_norm(gradient);
  const double norm = std::sqrt(squared_norm_of_mean(own));
  if (norm > max_norm) {
    for (at::Tensor& gradient : gradients) gradient.mul_(max_norm / norm);
  }
  return norm;
}

void BaseSynchronizer::wait() {
  const Clock::time_point start = Clock::now();
  finish_wait(engine_.wait(Engine::Until::kFirstVoid), start);
}

void BaseSynchronizer::wait(const std::vector<AverageId>& averages) {
  const Clock::time_point start = Clock::now();
  finish_wait(engine_.wait(averages, Engine::Until::kFirstVoid), start);
}

void BaseSynchronizer::finish_wait(const std::vector<Outcome>& outcomes, Clock::time_point start) {
  // Whatever else is under way is given up, so that neither this worker nor its peers wait for the timeout.
  if (std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) { return outcome.is_void(); })) {
    world_.abandon_channels();
  }
  require_done(outcomes);
  record_wait("waiting for averages", start);
}

void BaseSynchronizer::record_wait(const char* what, Clock::time_point start) {
  const Clock::time_point end = Clock::now();
  metrics_.wait_seconds += std::chrono::duration<double>(end - start).count();
  if (timeline_ == nullptr) return;
  timeline_->record({.kind = Span::Kind::kWait, .name = what, .iteration = iteration_, .start = start, .end = end});
}

void BaseSynchronizer::record(const char* stage, Clock::time_point start) {
  if (timeline_ == nullptr) return;
  timeline_->record({.kind = Span::Kind::kStage,
                     .name = stage,
                     .iteration = iteration_,
                     .start = start,
                     .end = Clock::now(),
                     .members = world_.everyone(),
                     .bytes = bytes_sent_});
}

void BaseSynchronizer::record_change(const std::string& why) {
  if (timeline_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  timeline_->record(
      {.kind = Span::Kind::kChange, .name = "new plan: " + why, .iteration = iteration_, .start = now, .end = now});
}

SyncState BaseSynchronizer::state() {
  settle();
  SyncState result{.iteration = iteration_};
  add_state(result);
  return result;
}

void BaseSynchronizer::load_state(const SyncState& state) {
  drop_average();
  settle();
  iteration_ = state.iteration;
  take_state(state);
}

double BaseSynchronizer::consolidate() {
  const at::NoGradGuard no_grad;
  if (world_.size() == 1) return 0;
  double distance = 0;
  outside_of_iterations([this, &distance] {
    parameters_.gather();
    distance = consolidate_parameters();
    parameters_.scatter();
    average_buffers();
  });
  return distance;
}

void BaseSynchronizer::average_everyone(const std::vector<NamedTensor>& tensors) {
  const at::NoGradGuard no_grad;
  if (world_.size() == 1) return;
  outside_of_iterations([this, &tensors] { average_floating(summable(tensors, true)); });
}

// Work that no iteration's figures count.
template <typename Work>
void BaseSynchronizer::outside_of_iterations(Work work) {
  const double waited = metrics_.wait_seconds;
  settle();
  work();
  metrics_.wait_seconds = waited;
  engine_.take_bytes_sent();
  bytes_sent_ = 0;
}

double BaseSynchronizer::consolidate_parameters() {
  std::vector<at::Tensor> before;
  for (const Flat& flat : parameters_.flats()) {
    before.push_back(flat.vector.clone());
    engine_.average(flat.vector, everyone(), iteration_, seconds_for(flat.vector, *everyone()));
  }
  wait();
  double distance = 0;
  for (std::size_t index = 0; index < before.size(); ++index) {
    distance += squared_norm(parameters_.flats()[index].vector - before[index]);
  }
  return distance;
}

void BaseSynchronizer::average_floating(const std::vector<NamedTensor>& tensors) {
  const TensorSet floating(tensors, Storage::kBorrowed);
  for (const Flat& flat : floating.flats()) {
    engine_.average(flat.vector, everyone(), iteration_, seconds_for(flat.vector, *everyone()));
  }
  wait();
  floating.scatter();
}

// Running statistics are not used in training, so they are brought together only here. What cannot be averaged (a
// counter of batches) is the same on all workers or rank 0's.
void BaseSynchronizer::average_buffers() {
  average_floating(summable(replica_.buffers, true));
  std::vector<at::Tensor> others;
  for (const NamedTensor& named : summable(replica_.buffers, false)) others.push_back(named.tensor);
  take_over_from_rank_0(others);
}

}  // namespace dssync
