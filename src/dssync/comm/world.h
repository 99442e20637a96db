// One worker among all: its rank, the c10d store, and the process groups that it shares with others.
//
// Thread-safe where it says so; everything else is for one thread. Joining, agreeing and connecting are collective:
// every worker calls them in the same order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dssync/base/error.h"
#include "dssync/comm/c10d.h"
#include "dssync/launch/assignment.h"
#include "dssync/topology/topology.h"

namespace dssync {

class Ticker;

// A worker that others need is gone, silent or failed. The message names the rank and, where known, the cause.
class PeerError : public Error {
 public:
  using Error::Error;
};

// The workers were not given the same thing: model, plan, options. The message names the ranks and the difference.
class AgreementError : public Error {
 public:
  using Error::Error;
};

// Makes and connects the process group of `members`, in which this worker is number `index`, under a name that no other
// group has. Called by the members alone.
using ChannelFactory = std::function<Channel(const std::vector<Rank>& members, int index, const std::string& name)>;

struct WorldOptions {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{60'000};  // for joining, connecting and every single stage of an average
  std::string address = "127.0.0.1";          // of the interface that carries the traffic of this worker
  ChannelFactory make_channel{};              // null: Gloo on `address`
};

// Tells the workers of this store that one of them is lost, and how: for launchers, which see their processes die.
void publish_loss(const Store& store, Rank rank, const std::string& description);

class World {
 public:
  // Joins: returns when all `size` workers are there. Throws PeerError that names the missing ones after the timeout.
  // `news` is a second connection to the same store, on which this worker shows that it lives and learns how others
  // fare; null for none.
  World(Store store, WorldOptions options, Store news = Store());
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // As the launcher's variables say (assignment_from), or alone where there are none.
  static std::unique_ptr<World> from_environment(std::chrono::milliseconds timeout = std::chrono::seconds(60));
  static std::unique_ptr<World> at(const Assignment& place, std::chrono::milliseconds timeout);

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::vector<Rank> everyone() const;  // ascending
  const std::string& address() const { return options_.address; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  const Store& store() const { return store_; }

  // Throws AgreementError on every worker unless all give the same lines. `topic` names what is compared ("model").
  void agree(const std::string& topic, const std::vector<std::string>& lines);

  // The lines that all workers give, in rank 0's order. Collective.
  std::vector<std::string> common(const std::string& topic, const std::vector<std::string>& lines);

  // Returns when all workers have called it with this name, each name once.
  void barrier(const std::string& name);

  // The process group of these members (this worker is one of them) for this use: made when first asked for, by its
  // members alone, connected when this returns. Numbers in the group follow the order of `members`. Workers that share
  // several groups must ask for them in the same order. Thread-safe.
  Channel channel(const std::vector<Rank>& members, const std::string& use);

  // Forgets a process group, and closes it once nobody holds it. All its members must have ended their last operation
  // in it, and release it before one of them asks for its members and use again. Thread-safe.
  void release(const Channel& channel);

  // A use that nobody else has, for messages that must not be taken for another object's. Collective.
  std::string unique(const std::string& use);

  // Gives up all process groups: whatever waits in them, here and at the other members, fails now instead of after the
  // timeout. Later calls of channel() make new groups.
  void abandon_channels() noexcept;

  // What has been told of lost workers, such as "rank 3 was killed by signal 9"; empty where all are there.
  // Thread-safe.
  std::string losses();

  // Tells all others why this worker gives up. Never throws. Thread-safe.
  void report_failure(const std::string& cause) noexcept;
  bool has_reported_failure() const { return has_reported_failure_; }

  // The error to throw after something done together with `members` failed with `what`: takes a few seconds to learn
  // which worker failed, and why. Thread-safe.
  PeerError explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what);

  // Seen by the others' explanations of a timeout. Thread-safe.
  void set_progress(std::int64_t iteration) { progress_ = iteration; }

 private:
  void join();
  void await(const std::string& key, const std::string& doing, const std::string& arrivals);

  WorldOptions options_;
  Store store_;
  Store news_;  // for explaining and reporting, also while another thread waits for store_
  std::mutex channels_mutex_;
  std::map<std::string, Channel> channels_;
  std::map<std::string, int> released_;  // how often, by name: names in the store are used once
  int agreements_ = 0;                   // made so far: names the next one
  int uses_ = 0;                         // made unique so far
  int generation_ = 0;                   // of the channels
  std::atomic<std::int64_t> progress_{0};
  std::atomic<bool> has_reported_failure_{false};
  std::unique_ptr<Ticker> pulse_;  // last: it uses the others
};

}  // namespace dssync
