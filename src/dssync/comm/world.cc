#include "dssync/comm/world.h"

#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "dssync/comm/agreement.h"
#include "dssync/comm/c10d/bounded_store.h"
#include "dssync/comm/c10d/store.h"
#include "dssync/comm/liveness.h"
#include "dssync/comm/process_signals.h"
#include "dssync/comm/rendezvous.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;

ChannelFactory gloo_channels(const Store& store, const WorldOptions& options) {
  return [store, make = gloo_groups(options.address, options.timeout)](const std::vector<Rank>& members, int index,
                                                                       const std::string& name) {
    return make(c10::make_intrusive<c10d::PrefixStore>(name, store), index, static_cast<int>(members.size()));
  };
}

Store reach_store_of(const Assignment& place, milliseconds timeout) {
  try {
    return reach_store(place.store_host, place.store_port, timeout);
  } catch (const Error& error) {
    throw PeerError(fmt::format("rank {}: {}", place.rank, error.what()));
  }
}

Candidate candidate_of(const WorldOptions& options) {
  return {.rank = options.rank,
          .size = options.size,
          .run = options.run,
          .address = options.address,
          .serves_store = options.store_place && is_served_here(*options.store_place),
          .store_place = options.store_place ? options.store_place->text() : "",
          .timeout = options.timeout};
}

// What c10d throws while workers meet is about the store: nobody has a process group yet.
template <typename Work>
auto meeting(Rank rank, Work work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerError(fmt::format("rank {}: joining: lost the store ({})", rank, plain_message(error.what())));
  }
}

}  // namespace

World::World(Store store, WorldOptions options, Store liveness_connection) : options_(std::move(options)) {
  if (options_.size < 1 || options_.rank < 0 || options_.rank >= options_.size) {
    throw InputError(fmt::format("rank {} is not one of {} workers", options_.rank, options_.size));
  }
  if (options_.address.empty()) {
    options_.address = options_.store_place ? address_towards(*options_.store_place) : "127.0.0.1";
  }
  ignore_broken_pipes();
  const auto losses = std::make_shared<LossRecord>(rank());
  const auto known_losses = [losses] { return losses->text(); };
  const Store bounded = c10::make_intrusive<BoundedStore>(std::move(store), options_.timeout, known_losses);
  const Candidate candidate = candidate_of(options_);
  const RunId run = meeting(rank(), [&] { return find_run(*bounded, candidate); });
  store_ = store_of(bounded, run, 0, options_.number);

  const LivenessOptions watch{.rank = rank(),
                              .size = size(),
                              .has_own_connection = bool(liveness_connection)};
  Store live = bounded;
  if (liveness_connection) live = c10::make_intrusive<BoundedStore>(std::move(liveness_connection), watch.silence);
  liveness_ = std::make_unique<Liveness>(store_of(live, run, 0, options_.number), losses, watch);
  membership_ = meeting(rank(), [&] { return join_run(store_, run, candidate, known_losses); });
  if (const std::optional<Rank> server = membership_.store_server()) liveness_->set_store_server(*server);

  if (!options_.make_channel) options_.make_channel = gloo_channels(store_, options_);
  channels_ = std::make_unique<Channels>(rank(), options_.make_channel, *liveness_);
  agreement_ = std::make_unique<Agreement>(Waiting{store_, rank(), size(), options_.timeout, known_losses});
  cut_on_loss_ = liveness_->on_loss([this](const Loss& loss) { channels_->cut_with(loss.rank); });
}

World::~World() = default;

std::unique_ptr<World> World::from_environment(milliseconds timeout) {
  const std::optional<Assignment> place = assignment_from(process_environment());
  if (place) return at(*place, timeout);
  return std::make_unique<World>(c10::make_intrusive<c10d::HashStore>(), WorldOptions{.timeout = timeout});
}

std::unique_ptr<World> World::at(const Assignment& place, milliseconds timeout) {
  const bool serve = place.rank == 0 && !place.store_is_hosted;
  Store store = serve ? serve_store(place.store_port, timeout).store : reach_store_of(place, timeout);
  Store liveness_connection = reach_store_of(place, timeout);
  WorldOptions options{.rank = place.rank,
                       .size = place.size,
                       .timeout = timeout,
                       .run = place.run,
                       .store_place = StorePlace{place.store_host, place.store_port}};
  return std::make_unique<World>(std::move(store), std::move(options), std::move(liveness_connection));
}

std::vector<Rank> World::everyone() const {
  std::vector<Rank> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void World::agree(const std::string& topic, const std::vector<std::string>& lines) {
  liveness_->rethrow_from_listeners();
  agreement_->agree(topic, lines);
}

void World::agree_on(const Topology& topology) {
  agree("network", network_lines(topology));
  membership_.topology = topology;
}

std::vector<std::string> World::common(const std::string& topic, const std::vector<std::string>& lines) {
  liveness_->rethrow_from_listeners();
  return agreement_->common(topic, lines);
}

void World::barrier(const std::string& name) {
  liveness_->rethrow_from_listeners();
  agreement_->barrier(name);
}

Channel World::channel(const std::vector<Rank>& members, const std::string& use) {
  liveness_->rethrow_from_listeners();
  return channels_->get(members, use);
}

void World::release(const Channel& channel) { channels_->release(channel); }

std::string World::unique(const std::string& use) { return fmt::format("{} {}", use, uses_++); }

void World::abandon_channels() noexcept { channels_->abandon(); }

std::string World::losses() const { return liveness_->losses(); }

LossSubscription World::on_loss(LossListener listener) { return liveness_->on_loss(std::move(listener)); }

void World::report_failure(const std::string& cause) noexcept { liveness_->report_failure(cause); }

bool World::has_reported_failure() const { return liveness_->has_reported_failure(); }

void World::leave() noexcept { liveness_->leave(); }

void World::set_progress(std::int64_t iteration) { liveness_->set_progress(iteration); }

PeerError World::explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what) {
  return liveness_->explain(doing, members, what);
}

}  // namespace dssync
