// Rank 0 decides who exchanges data with whom, and tells all; they do it at the same time and tell it their rates.
#include "dssync/live/discover_network.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/discovery/discovery.h"
#include "dssync/live/machines.h"
#include "dssync/topology/read.h"
#include "dssync/topology/write.h"

namespace dssync {
namespace {

using std::int64_t;
using Clock = std::chrono::steady_clock;

constexpr double kTransferSeconds = 0.24;  // with what a matching needs besides, 0.3
constexpr double kWarmUp = 0.3;            // part of a transfer after which rates count,
constexpr double kCoolDown = 0.9;          // and after which no more: other pairs may have ended
constexpr double kMostSeconds = 17;        // after so long, what is known must do
constexpr int kWindow = 4;                 // messages under way in each direction
constexpr int kTag = 1;

constexpr double kMessageSeconds = 0.003;  // that a message takes a host of median speed
constexpr int64_t kFirstMessageBytes = 16'384;
constexpr int64_t kFewestMessageBytes = 1'024;
constexpr int64_t kMostMessageBytes = 4'194'304;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

at::Tensor bytes_filled_with(int64_t count, int value) {
  return at::full({count}, value, at::TensorOptions().dtype(at::kByte));
}

// What two workers do at the same time as all other pairs: they pass messages to and fro for kTransferSeconds.
//
// kWindow messages are under way in each direction, and each that comes is answered by one. So both directions are
// always full, and nobody needs to know beforehand how much the network carries in that time. The leader ends it: its
// messages are marked from some number on, and from there on both have kWindow messages still to come.
class Transfer {
 public:
  Transfer(ChannelType& channel, Rank partner, bool is_leader, int64_t bytes)
      : channel_(channel),
        partner_(partner),
        is_leader_(is_leader),
        bytes_(bytes),
        plain_(bytes_filled_with(bytes, 0)),
        marked_(bytes_filled_with(bytes, 1)) {
    for (int i = 0; i < kWindow; ++i) places_.push_back(bytes_filled_with(bytes, 0));
  }

  // Of what came in.
  Bandwidth measure() {
    start_ = Clock::now();
    receiving_.resize(kWindow);
    for (int number = 0; number < kWindow; ++number) exchange(number);
    for (int number = 0; number < total_; ++number) {
      receiving_[place_of(number)]->wait();
      arrivals_.push_back(seconds_since(start_));
      if (total_ == kUnknown) look_for_the_end(number);
      if (number < total_ - kWindow) exchange(number + kWindow);
    }
    for (const Work& sent : sending_) sent->wait();
    return rate();
  }

 private:
  static constexpr int kUnknown = std::numeric_limits<int>::max();

  static std::size_t place_of(int number) { return static_cast<std::size_t>(number % kWindow); }

  // Starts to receive and to send message `number`.
  void exchange(int number) {
    std::vector<at::Tensor> incoming = {places_[place_of(number)]};
    receiving_[place_of(number)] = channel_.recv(incoming, partner_, kTag);
    std::vector<at::Tensor> outgoing = {total_ == kUnknown ? plain_ : marked_};
    sending_.push_back(channel_.send(outgoing, partner_, kTag));
  }

  // The leader's mark is on the next message that it sends, number + kWindow.
  void look_for_the_end(int number) {
    if (!is_leader_) {
      const bool is_marked = *places_[place_of(number)].data_ptr<std::uint8_t>() != 0;
      if (is_marked) total_ = number + kWindow;
      return;
    }
    // The pace of the first ones tells little: the partner may have started late.
    const double seconds = arrivals_.back();
    const double done = number + 1;
    const bool would_end_late = seconds * (done + 2 * kWindow) >= kTransferSeconds * done;
    if (seconds > kWarmUp * kTransferSeconds && would_end_late) total_ = number + 2 * kWindow;
  }

  // What came while all pairs were busy, or where that is too little, all that came. It is counted from the message
  // before it, or from the start: a receiver that had no CPU for a while finds all that came meanwhile at once.
  Bandwidth rate() const {
    auto first = std::lower_bound(arrivals_.begin(), arrivals_.end(), kWarmUp * kTransferSeconds);
    auto last = std::lower_bound(first, arrivals_.end(), kCoolDown * kTransferSeconds);
    if (last - first < kWindow / 2) {
      first = arrivals_.begin();
      last = arrivals_.end();
    }
    const double before = first == arrivals_.begin() ? 0 : *std::prev(first);
    return {static_cast<double>(bytes_ * (last - first)) / std::max(*std::prev(last) - before, 1e-6)};
  }

  ChannelType& channel_;
  const Rank partner_;
  const bool is_leader_;
  const int64_t bytes_;
  const at::Tensor plain_;
  const at::Tensor marked_;
  std::vector<at::Tensor> places_;  // for kWindow messages that come
  std::vector<Work> receiving_;
  std::vector<Work> sending_;
  int total_ = kUnknown;  // messages each way
  Clock::time_point start_;
  std::vector<double> arrivals_;  // seconds since the start
};

// Messages of all workers to rank 0, and of rank 0 to all.
class Assembly {
 public:
  explicit Assembly(World& world) : world_(world) {
    if (world.size() > 1) channel_ = world.channel(world.everyone(), world.unique("discovery"));
  }

  ChannelType& channel() { return *channel_; }

  // Rank 0 gets all, by rank; the others get nothing.
  std::vector<at::Tensor> gather(const at::Tensor& mine) {
    if (!channel_) return {mine};
    std::vector<std::vector<at::Tensor>> all;
    if (world_.rank() == 0) {
      all.emplace_back();
      for (int rank = 0; rank < world_.size(); ++rank) all.front().push_back(at::empty_like(mine));
    }
    std::vector<at::Tensor> inputs = {mine};
    channel_->gather(all, inputs)->wait();
    return all.empty() ? std::vector<at::Tensor>() : all.front();
  }

  void broadcast(const at::Tensor& tensor) {
    if (!channel_) return;
    std::vector<at::Tensor> tensors = {tensor};
    channel_->broadcast(tensors)->wait();
  }

 private:
  World& world_;
  Channel channel_;
};

// On rank 0: whom to let exchange data, and what their rates say.
class Director {
 public:
  explicit Director(const std::vector<Machine>& machines)
      : options_(options_for(machines)),
        hosts_(hosts_on(machines)),
        discovery_(names_of(hosts_), workers_of(hosts_), options_),
        fastest_(hosts_.size(), 0) {}

  int done() const { return done_; }
  int most() const { return Discovery::max_matchings(static_cast<int>(hosts_.size()), options_); }

  // Returns the size of a message and writes everybody's partner, by rank; 0 when enough is known.
  int64_t next(std::span<int64_t> partners) {
    const std::optional<Matching> matching = next_matching();
    if (!matching) return 0;
    matching_ = *matching;
    std::fill(partners.begin(), partners.end(), kNone);
    for (const auto& [a, b] : matching_) {
      partners[rank_of(a)] = static_cast<int64_t>(rank_of(b));
      partners[rank_of(b)] = static_cast<int64_t>(rank_of(a));
    }
    return message_bytes();
  }

  // What came in, by rank.
  void add(const std::vector<Bandwidth>& rates) {
    MeasuredMatching measured{matching_, {}};
    for (const auto& [a, b] : matching_) {
      measured.rates.push_back({rates[rank_of(b)], rates[rank_of(a)]});
      for (const int host : {a, b}) {
        double& fastest = fastest_[static_cast<std::size_t>(host)];
        fastest = std::max(fastest, rates[rank_of(host)].bytes_per_second);
      }
    }
    if (std::exchange(is_rehearsed_, true)) {
      discovery_.add(measured);
      ++done_;
    }
  }

  std::string file() const {
    const DiscoveredNetwork network = discovery_.result();
    std::string text = options_.flat ? "# All workers are on one machine.\n" : "";
    for (const std::string& note : network.notes) text += fmt::format("# {}\n", note);
    return text + write_yaml_topology(network.topology);
  }

 private:
  // Between processes of one machine there is no network, and their rates depend on who has a CPU.
  static DiscoveryOptions options_for(const std::vector<Machine>& machines) {
    DiscoveryOptions options;
    options.flat = is_one_machine(machines);
    return options;
  }

  static std::vector<std::string> names_of(const std::vector<DiscoveredHost>& hosts) {
    std::vector<std::string> names;
    for (const DiscoveredHost& host : hosts) names.push_back(host.name);
    return names;
  }

  static std::vector<int> workers_of(const std::vector<DiscoveredHost>& hosts) {
    std::vector<int> workers;
    for (const DiscoveredHost& host : hosts) workers.push_back(host.workers);
    return workers;
  }

  std::size_t rank_of(int host) const { return static_cast<std::size_t>(hosts_[static_cast<std::size_t>(host)].first); }

  std::optional<Matching> next_matching() {
    if (seconds_since(start_) > kMostSeconds) return std::nullopt;
    if (is_rehearsed_ || most() == 0) return discovery_.next();
    Matching neighbours;
    for (int host = 0; host + 1 < static_cast<int>(hosts_.size()); host += 2) neighbours.emplace_back(host, host + 1);
    return neighbours;
  }

  // The same for all pairs: where a queue is full, each has as much in it as the others. Before anything is known, a
  // rehearsal shows how fast the network is, roughly.
  int64_t message_bytes() const {
    if (!is_rehearsed_) return kFirstMessageBytes;
    std::vector<double> rates = fastest_;
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    const double bytes = std::min(*middle * kMessageSeconds, static_cast<double>(kMostMessageBytes));
    return std::max(static_cast<int64_t>(bytes), kFewestMessageBytes);
  }

  const DiscoveryOptions options_;
  const std::vector<DiscoveredHost> hosts_;
  Discovery discovery_;
  std::vector<double> fastest_;  // by host: what came in at best, bytes per second
  const Clock::time_point start_ = Clock::now();
  Matching matching_;  // under way
  bool is_rehearsed_ = false;
  int done_ = 0;
};

at::Tensor bytes_of(const std::string& text, std::size_t size) {
  at::Tensor tensor = bytes_filled_with(static_cast<int64_t>(size), 0);
  std::memcpy(tensor.data_ptr(), text.data(), std::min(text.size(), size));
  return tensor;
}

// Up to the first zero.
std::string text_of(const at::Tensor& bytes) {
  const auto* begin = static_cast<const char*>(bytes.data_ptr());
  return {begin, strnlen(begin, static_cast<std::size_t>(bytes.numel()))};
}

constexpr std::size_t kNameBytes = 256;

// Of all workers on rank 0, by rank; nothing on the others.
std::vector<Machine> gather_machines(const World& world, Assembly& assembly) {
  const Machine own = this_machine(world.address());
  const std::vector<at::Tensor> names = assembly.gather(bytes_of(own.name, kNameBytes));
  const std::vector<at::Tensor> addresses = assembly.gather(bytes_of(own.address, kNameBytes));
  std::vector<Machine> machines;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    machines.push_back({text_of(names[rank]), text_of(addresses[rank])});
  }
  return machines;
}

// This worker's part in a matching; what all of them measured is known to rank 0.
std::vector<Bandwidth> take_part(const World& world, Assembly& assembly, int64_t partner, int64_t message_bytes) {
  double rate = 0;
  if (partner != kNone) {
    const auto other = static_cast<Rank>(partner);
    rate = Transfer(assembly.channel(), other, world.rank() < other, message_bytes).measure().bytes_per_second;
  }
  std::vector<Bandwidth> rates;
  for (const at::Tensor& value : assembly.gather(at::full({1}, rate, at::kDouble))) {
    rates.push_back({value.item<double>()});
  }
  return rates;
}

// What rank 0 found, handed out to all.
std::string hand_out(Assembly& assembly, const std::string& file) {
  at::Tensor length = at::full({1}, static_cast<int64_t>(file.size()), at::kLong);
  assembly.broadcast(length);
  const at::Tensor bytes = bytes_of(file, static_cast<std::size_t>(length.item<int64_t>()));
  assembly.broadcast(bytes);
  return text_of(bytes);
}

std::string measure(World& world, const DiscoveryWatcher& watcher) {
  Assembly assembly(world);
  std::optional<Director> director;
  const std::vector<Machine> machines = gather_machines(world, assembly);
  if (world.rank() == 0) director.emplace(machines);
  while (true) {
    // The size of a message, then everybody's partner. That it comes is the sign to start.
    const at::Tensor orders = at::zeros({1 + world.size()}, at::kLong);
    auto* order = orders.data_ptr<int64_t>();
    if (director) *order = director->next({order + 1, static_cast<std::size_t>(world.size())});
    assembly.broadcast(orders);
    if (*order == 0) break;
    const std::vector<Bandwidth> rates = take_part(world, assembly, order[1 + world.rank()], *order);
    if (!director) continue;
    director->add(rates);
    if (watcher) watcher(director->done(), director->most());
  }
  return hand_out(assembly, director ? director->file() : "");
}

}  // namespace

MeasuredNetwork discover_network(World& world, const DiscoveryWatcher& watcher) {
  try {
    std::string file = measure(world, watcher);
    return {read_yaml_topology(file, "discovered network").topology, file};
  } catch (const PeerError&) {
    world.abandon_channels();
    throw;
  } catch (const Error& error) {
    world.report_failure(error.what());
    world.abandon_channels();
    throw;
  } catch (const std::exception& error) {
    const PeerError explained = world.explain("discovering the network", world.everyone(), error.what());
    world.abandon_channels();
    throw explained;
  }
}

}  // namespace dssync
