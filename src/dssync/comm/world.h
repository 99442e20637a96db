// One worker among all: a thin front over what finds the others (rendezvous), compares with them (agreement), connects
// to them (channels) and watches them (liveness).
//
// Thread-safe where it says so; everything else is for one thread. Joining, agreeing and connecting are collective:
// every worker calls them in the same order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/comm/c10d/store_place.h"
#include "dssync/comm/channels.h"
#include "dssync/comm/errors.h"
#include "dssync/comm/losses/loss_listeners.h"
#include "dssync/comm/losses/published_losses.h"
#include "dssync/comm/membership.h"
#include "dssync/launch/assignment.h"
#include "dssync/topology/topology.h"

namespace dssync {

class Agreement;
class Liveness;

struct WorldOptions {
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{60'000};  // for joining, connecting and every single stage of an average
  std::string address{};                      // of the interface that carries the traffic of this worker; empty: of
                                              // the one from which the store is reached
  ChannelFactory make_channel{};              // null: Gloo on `address`
  RunId run{};                                // no name: that of the run that the store serves, else a new one
  int number = 0;                             // of this world among those of its process, the same on all workers
  std::optional<StorePlace> store_place{};    // nothing: it is not reached by TCP
};

class World {
 public:
  // Joins: returns when all `size` workers are there. Throws PeerError that names the missing ones after the timeout,
  // and InputError where this worker does not belong to the run that the store serves.
  // `liveness_connection` is a second connection to the same store, on which this worker shows that it lives and learns
  // how others fare, whatever the first one waits for. Without it (null), this worker is not watched, nor does it watch
  // others; it only hears of losses that others publish.
  World(Store store, WorldOptions options, Store liveness_connection = Store());
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
  const Membership& membership() const { return membership_; }

  // The run's part of the store. Its calls end within the timeout; what waits for a key in it fails as soon as a worker
  // is lost. Thread-safe.
  const Store& store() const { return store_; }

  // Throws AgreementError on every worker unless all give the same lines. `topic` names what is compared ("model").
  void agree(const std::string& topic, const std::vector<std::string>& lines);

  // The same for the network, which becomes the membership's.
  void agree_on(const Topology& topology);

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
  // timeout. Later calls of channel() make new groups. Thread-safe.
  void abandon_channels() noexcept;

  // What has been told of lost workers, such as "rank 3 was killed by signal 9"; empty where all are there. Half a
  // second old at most. Asks nobody. Thread-safe.
  std::string losses() const;

  // Calls the listener for every loss (loss_listeners.h), by when the process groups that this worker shares with the
  // lost one are cut. The subscription ends before the World. Thread-safe.
  LossSubscription on_loss(LossListener listener);

  // Tells all others why this worker gives up: they take it for lost. Never throws; takes a second at most.
  // Thread-safe.
  void report_failure(const std::string& cause) noexcept;
  bool has_reported_failure() const;

  // The error to throw after a call of c10d, done together with `members`, failed with `what`. For nothing else: what
  // goes wrong in this worker (bad_alloc, a bad argument) is no peer's fault. Names the lost worker at once where it is
  // known, and otherwise takes up to 4 s to learn who failed, left or is behind. Thread-safe.
  PeerError explain(const std::string& doing, const std::vector<Rank>& members, const std::string& what);

  // From now on this worker is no longer watched, nor lost: it needs the others no more, and they should not need it.
  // The end of a World does the same. Never throws. Thread-safe.
  void leave() noexcept;

  // Seen by the others' explanations of a timeout. Thread-safe.
  void set_progress(std::int64_t iteration);

 private:
  WorldOptions options_;
  Store store_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Channels> channels_;
  std::unique_ptr<Agreement> agreement_;
  Membership membership_;
  LossSubscription cut_on_loss_;  // after what it uses
  int uses_ = 0;                  // made unique so far
};

}  // namespace dssync
