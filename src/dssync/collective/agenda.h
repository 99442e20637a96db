// The order of operations: which may start next, which averages are done, and which are void after a failure. Plain
// numbers, without tensors, threads or clocks. Owned by the performer. Not thread-safe.
//
// A channel matches the operations of its members by their order. So all members follow the order in which averages
// are handed in, whatever ends first; and where one operation fails or is never started, nothing later in that channel
// can be trusted: the channel is broken, and every average with an unfinished operation in it is void. A void average
// starts no more operations, so the channels that it still had to use are broken as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dssync/base/units.h"

namespace dssync {

// Operations of a channel that run side by side share its links: the more of them, the later the first one is done and
// the next phase has something to do. So only as many as it takes to have no link wait for the next message, for
// operations that take so long each.
int most_at_once(Seconds operation);

// Items are what is averaged in one go: pieces of averages.
class Agenda {
 public:
  using ChannelKey = const void*;
  using ItemId = std::int64_t;
  using Cause = int;  // the number that whoever reports a failure gives it

  struct Operation {
    ChannelKey channel = nullptr;
    int most_at_once = 1;  // it waits while so many others of its channel run
  };

  // What one item does: operations of a phase run side by side; a phase starts when the one before it is done.
  struct Course {
    std::vector<std::vector<Operation>> phases;
    double urgency = 0;       // the more, the sooner; the same on all members
    std::size_t slowest = 0;  // phase
  };

  struct OperationId {
    ItemId item = 0;
    std::size_t phase = 0;
    std::size_t index = 0;  // in the phase

    bool operator==(const OperationId&) const = default;
  };

  struct Ending {
    ItemId item = 0;
    bool is_void = false;

    bool operator==(const Ending&) const = default;
  };

  template <typename Thing>
  struct Caused {
    Thing thing{};
    Cause cause = 0;

    bool operator==(const Caused&) const = default;
  };

  // Gives every operation its place in the order of its channel. An item that needs a broken channel is void at once.
  ItemId add(Course course);

  // The next operation to start, which runs from now on; nothing where all have to wait.
  std::optional<OperationId> next();

  // How a running operation ended.
  void done(const OperationId& id);

  // In a failure: the channel is broken.
  void fail(const OperationId& id, Cause cause);

  // Well between workers, but this worker cannot go on with the item.
  void drop(const OperationId& id, Cause cause);

  bool is_void(ItemId item) const;

  // Whether this operation's channel is broken, so that its failure says nothing new.
  bool is_broken(const OperationId& id) const;

  // A broken channel that nobody can use again.
  void forget(ChannelKey channel) { broken_.erase(channel); }

  // Since the last call of each. An item is void first, and ends when none of its operations runs any more.
  std::vector<Ending> take_ended() { return std::exchange(ended_, {}); }
  std::vector<Caused<ItemId>> take_void() { return std::exchange(void_, {}); }
  std::vector<Caused<ChannelKey>> take_broken() { return std::exchange(newly_broken_, {}); }

 private:
  struct Item {
    Course course;
    std::size_t phase = 0;       // that is under way
    std::size_t unfinished = 0;  // operations of this phase
    std::size_t running = 0;
    std::vector<std::vector<bool>> started;  // by phase and index
    bool is_void = false;
  };

  // The operations of one channel, in the order that all its members follow.
  struct Queue {
    std::deque<OperationId> waiting;
    std::vector<OperationId> running;
  };

  // How many items of one urgency have yet to reach their slowest phase, and are in it.
  struct Flow {
    int before = 0;
    int within = 0;

    bool starves() const;
  };

  const Operation& operation(const OperationId& id) const;
  bool may_start(const Queue& queue) const;
  bool is_held_back(double urgency) const;
  void enqueue(ItemId id, const Item& item);
  void stop_running(const OperationId& id);
  void enter_phase(ItemId id, Item& item);
  void leave_phase(Item& item);
  void count(const Item& item, int change);
  std::vector<ChannelKey> make_void(ItemId id, Cause cause);
  void spread(std::vector<ChannelKey> channels, Cause cause);
  std::vector<ItemId> clear(ChannelKey channel);
  void end_if_idle(ItemId id);

  std::map<ItemId, Item> items_;
  std::map<ChannelKey, Queue> queues_;  // of channels that are in use
  std::map<ChannelKey, Cause> broken_;
  std::map<double, Flow, std::greater<>> flows_;  // by urgency
  ItemId next_id_ = 0;
  std::vector<Ending> ended_;
  std::vector<Caused<ItemId>> void_;
  std::vector<Caused<ChannelKey>> newly_broken_;
};

}  // namespace dssync
