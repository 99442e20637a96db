#include "dssync/comm/world.h"

#include <algorithm>
#include <csignal>
#include <netdb.h>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "dssync/comm/store.h"
#include "dssync/comm/ticker.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPulseEvery{500};
constexpr milliseconds kSilenceOfTheDead{2500};  // a worker without a new pulse for so long is taken for dead

std::string ranks_text(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

struct Loss {
  Rank rank = 0;
  std::string description;
};

constexpr const char* kLossCount = "dssync/losses/count";
std::string loss_key(std::int64_t number) { return fmt::format("dssync/losses/{}", number); }
std::string pulse_key(Rank rank) { return fmt::format("dssync/pulse/{}", rank); }

std::vector<Loss> published_losses(c10d::Store& store) {
  std::vector<Loss> result;
  const std::int64_t count = store.add(kLossCount, 0);
  for (std::int64_t number = 1; number <= count; ++number) {
    const std::string text = get_text(store, loss_key(number));
    const std::size_t space = text.find(' ');
    result.push_back({std::stoi(text.substr(0, space)), text.substr(space + 1)});
  }
  return result;
}

std::string describe(const std::vector<Loss>& losses, Rank self) {
  std::vector<std::string> parts;
  std::set<Rank> named;
  for (const Loss& loss : losses) {
    if (loss.rank != self && named.insert(loss.rank).second) {
      parts.push_back(fmt::format("rank {} {}", loss.rank, loss.description));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

struct Sign {
  std::string text;  // "beats iteration", or "left"
  bool operator==(const Sign&) const = default;
};

std::map<Rank, Sign> signs_of_life(c10d::Store& store, const std::vector<Rank>& ranks) {
  std::map<Rank, Sign> result;
  for (const Rank rank : ranks) {
    const std::string key = pulse_key(rank);
    if (store.check({key})) result[rank] = {get_text(store, key)};
  }
  return result;
}

// Those whose pulse stood still, or who left.
std::vector<Rank> silent_between(const std::map<Rank, Sign>& before, const std::map<Rank, Sign>& after, Rank self) {
  std::vector<Rank> result;
  for (const auto& [rank, sign] : after) {
    const auto earlier = before.find(rank);
    if (rank != self && earlier != before.end() && earlier->second == sign) result.push_back(rank);
  }
  return result;
}

// "rank 3 is still at iteration 17": those furthest behind, where somebody is behind.
std::string laggards(const std::map<Rank, Sign>& signs) {
  std::map<std::int64_t, std::vector<Rank>> by_iteration;
  for (const auto& [rank, sign] : signs) {
    const std::size_t space = sign.text.find(' ');
    if (space != std::string::npos) by_iteration[std::stoll(sign.text.substr(space + 1))].push_back(rank);
  }
  if (by_iteration.size() < 2) return "";
  const auto& [iteration, ranks] = *by_iteration.begin();
  return fmt::format("{} {} still at iteration {}", ranks_text(ranks), ranks.size() == 1 ? "is" : "are", iteration);
}

// The local address from which `host` is reached: the interface that should carry the traffic. (The name of a Debian
// machine resolves to 127.0.1.1, which no other machine reaches.)
std::string address_towards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "127.0.0.1";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(found, freeaddrinfo);
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const int handle = socket(entry->ai_family, entry->ai_socktype, entry->ai_protocol);
    if (handle < 0) continue;
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    char text[NI_MAXHOST] = "";
    const bool ok =
        connect(handle, entry->ai_addr, entry->ai_addrlen) == 0 &&
        getsockname(handle, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
    close(handle);
    if (ok) return text;
  }
  return "127.0.0.1";
}

// A peer that goes away is an error of the call, not the end of the process. Whoever handles the signal keeps doing so.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

ChannelFactory gloo_channels(const Store& store, const WorldOptions& options, std::function<std::string()> losses) {
  return [store, make = gloo_groups(options.address, options.timeout, std::move(losses))](
             const std::vector<Rank>& members, int index, const std::string& name) {
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

// Says, on a connection of its own, that this worker lives and how far it is. False where the store is gone: whoever
// needs it next finds out, and says so.
bool beat(c10d::Store& store, Rank rank, std::int64_t beats, std::int64_t progress) {
  try {
    put_text(store, pulse_key(rank), fmt::format("{} {}", beats, progress));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void publish_loss(const Store& store, Rank rank, const std::string& description) {
  // The count rises last, so that whoever sees it finds the text.
  const std::int64_t number = store->add("dssync/losses/next", 1);
  put_text(*store, loss_key(number), fmt::format("{} {}", rank, description));
  store->add(kLossCount, 1);
}

World::World(Store store, WorldOptions options, Store news)
    : options_(std::move(options)), store_(std::move(store)), news_(news ? news : store_) {
  if (options_.size < 1 || options_.rank < 0 || options_.rank >= options_.size) {
    throw InputError(fmt::format("rank {} is not one of {} workers", options_.rank, options_.size));
  }
  ignore_broken_pipes();
  store_->setTimeout(options_.timeout);
  news_->setTimeout(options_.timeout);
  if (!options_.make_channel) options_.make_channel = gloo_channels(store_, options_, [this] { return losses(); });
  join();
  if (news_ == store_) return;
  pulse_ = std::make_unique<Ticker>(
      kPulseEvery, [this, beats = std::int64_t{0}]() mutable { return beat(*news_, rank(), beats++, progress_); });
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
  Store news = reach_store_of(place, timeout);
  if (!place.store_prefix.empty()) {
    store = c10::make_intrusive<c10d::PrefixStore>(place.store_prefix, store);
    news = c10::make_intrusive<c10d::PrefixStore>(place.store_prefix, news);
  }
  WorldOptions options{.rank = place.rank,
                       .size = place.size,
                       .timeout = timeout,
                       .address = address_towards(place.store_host, place.store_port),
                       .make_channel = nullptr};
  return std::make_unique<World>(std::move(store), std::move(options), std::move(news));
}

std::vector<Rank> World::everyone() const {
  std::vector<Rank> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Waits for `key`. Where it doesn't come, a published loss is the cause, or the ranks that have not set
// "ARRIVALS/RANK". Asks again and again instead of blocking in the store, so that a loss is heard of at once.
void World::await(const std::string& key, const std::string& doing, const std::string& arrivals) {
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  const std::string start = fmt::format("rank {}: {}", rank(), doing);
  try {
    for (milliseconds pause{1}; !store_->check({key}); pause = std::min(2 * pause, milliseconds(100))) {
      const std::string lost = losses();
      // Whoever was lost may have been here before: then this worker goes on, and hears of it where it needs the other.
      if (!lost.empty() && store_->check({key})) return;
      if (!lost.empty()) throw PeerError(fmt::format("{}: {}", start, lost));
      if (std::chrono::steady_clock::now() >= deadline) {
        std::vector<Rank> missing;
        for (const Rank other : everyone()) {
          if (!store_->check({fmt::format("{}/{}", arrivals, other)})) missing.push_back(other);
        }
        throw PeerError(fmt::format("{}: {} did not come within {} s", start, ranks_text(missing),
                                    static_cast<double>(options_.timeout.count()) / 1000));
      }
      std::this_thread::sleep_for(pause);
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerError(fmt::format("{}: lost the store ({})", start, plain_message(error.what())));
  }
}

void World::join() {
  const std::string place = fmt::format("dssync/join/{}", rank());
  if (store_->add(place + "/times", 1) > 1) {
    throw InputError(fmt::format("rank {} has joined already: two workers were started with the same rank", rank()));
  }
  put_text(*store_, place, "here");
  if (store_->add("dssync/join/count", 1) == size()) put_text(*store_, "dssync/join/all", "here");
  await("dssync/join/all", fmt::format("waiting for all {} workers", size()), "dssync/join");
}

void World::barrier(const std::string& name) {
  const std::string key = fmt::format("dssync/barrier/{}", name);
  put_text(*store_, fmt::format("{}/{}", key, rank()), "here");
  if (store_->add(key + "/count", 1) == size()) put_text(*store_, key + "/all", "here");
  await(key + "/all", fmt::format("waiting at '{}'", name), key);
}

Channel World::channel(const std::vector<Rank>& members, const std::string& use) {
  std::string name;
  std::string incarnation;
  {
    const std::lock_guard lock(channels_mutex_);
    name = fmt::format("dssync/channel/{}/{}/{}", generation_, use, fmt::join(members, ","));
    const auto released = released_.find(name);
    if (released != released_.end()) incarnation = fmt::format("/{}", released->second);
    const auto known = channels_.find(name);
    if (known != channels_.end()) return known->second;
  }
  const auto self = std::find(members.begin(), members.end(), rank());
  if (self == members.end()) throw Error(fmt::format("rank {} is no member of {}", rank(), ranks_text(members)));
  try {
    Channel made = options_.make_channel(members, static_cast<int>(self - members.begin()), name + incarnation);
    const std::lock_guard lock(channels_mutex_);
    return channels_.emplace(name, std::move(made)).first->second;
  } catch (const std::exception& error) {
    throw explain("connecting with " + ranks_text(members), members, error.what());
  }
}

void World::release(const Channel& channel) {
  const std::lock_guard lock(channels_mutex_);
  const auto found = std::find_if(channels_.begin(), channels_.end(),
                                  [&channel](const auto& known) { return known.second == channel; });
  if (found == channels_.end()) return;  // given up
  ++released_[found->first];
  channels_.erase(found);
}

std::string World::unique(const std::string& use) { return fmt::format("{} {}", use, uses_++); }

void World::abandon_channels() noexcept {
  const std::lock_guard lock(channels_mutex_);
  ++generation_;
  for (const auto& [name, channel] : channels_) {
    try {
      cut(*channel);
    } catch (const std::exception&) {
      // It is broken already, which is what was asked for.
    }
  }
  channels_.clear();
}

std::string World::losses() { return describe(published_losses(*news_), rank()); }

void World::report_failure(const std::string& cause) noexcept {
  has_reported_failure_ = true;
  try {
    publish_loss(news_, rank(), "failed: " + cause);
  } catch (const std::exception&) {
    // Without the store nobody can be told. The others see this worker's connections close.
  }
}

PeerError World::explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what) {
  const std::string start = fmt::format("rank {}: {}", rank(), doing);
  const std::string symptom = plain_message(what);
  try {
    const std::map<Rank, Sign> before = signs_of_life(*news_, members);
    const auto deadline = std::chrono::steady_clock::now() + kSilenceOfTheDead;
    do {
      const std::string lost = losses();
      if (!lost.empty()) return PeerError(fmt::format("{}: {}", start, lost));
      if (!pulse_) return PeerError(fmt::format("{}: {}", start, symptom));
      std::this_thread::sleep_for(milliseconds(50));
    } while (std::chrono::steady_clock::now() < deadline);
    const std::map<Rank, Sign> after = signs_of_life(*news_, members);
    const std::vector<Rank> silent = silent_between(before, after, rank());
    if (!silent.empty()) {
      for (const Rank lost : silent) publish_loss(news_, lost, "gives no sign of life");
      return PeerError(fmt::format("{}: {} {} no sign of life ({})", start, ranks_text(silent),
                                   silent.size() == 1 ? "gives" : "give", symptom));
    }
    const std::string behind = laggards(after);
    return PeerError(fmt::format("{}: {}{}{}", start, behind, behind.empty() ? "" : ": ", symptom));
  } catch (const std::exception& error) {
    return PeerError(fmt::format("{}: {}; the store is gone, too: the launcher or rank 0 has ended ({})", start,
                                 symptom, plain_message(error.what())));
  }
}

}  // namespace dssync
