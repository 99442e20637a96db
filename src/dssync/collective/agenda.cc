#include "dssync/collective/agenda.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dssync/collective/tuning.h"
#include "dssync/comm/c10d/c10d.h"

namespace dssync {

int most_at_once(Seconds operation) {
  constexpr double kMost = kChannelThreads;
  const double seconds = std::max(1e-9, operation.count());
  return 1 + static_cast<int>(std::ceil(std::min(kMost - 1, tuning::kGapBetweenOperations.count() / seconds)));
}

bool Agenda::Flow::starves() const { return before > 0 && within < tuning::kWellFed; }

const Agenda::Operation& Agenda::operation(const OperationId& id) const {
  return items_.at(id.item).course.phases[id.phase][id.index];
}

Agenda::ItemId Agenda::add(Course course) {
  const ItemId id = next_id_++;
  Item& item = items_[id];
  item.course = std::move(course);
  std::optional<Cause> cause;
  for (const std::vector<Operation>& phase : item.course.phases) {
    item.started.emplace_back(phase.size(), false);
    for (const Operation& operation : phase) {
      const auto broken = broken_.find(operation.channel);
      if (broken != broken_.end() && !cause) cause = broken->second;
    }
  }
  count(item, 1);
  if (cause) {
    spread(make_void(id, *cause), *cause);
    end_if_idle(id);
  } else {
    enqueue(id, item);
    enter_phase(id, item);
  }
  return id;
}

void Agenda::enqueue(ItemId id, const Item& item) {
  for (std::size_t phase = 0; phase < item.course.phases.size(); ++phase) {
    for (std::size_t index = 0; index < item.course.phases[phase].size(); ++index) {
      queues_[item.course.phases[phase][index].channel].waiting.push_back({id, phase, index});
    }
  }
}

std::optional<Agenda::OperationId> Agenda::next() {
  for (auto& [channel, queue] : queues_) {
    if (queue.waiting.empty() || !may_start(queue)) continue;
    const OperationId id = queue.waiting.front();
    queue.waiting.pop_front();
    queue.running.push_back(id);
    Item& item = items_.at(id.item);
    item.started[id.phase][id.index] = true;
    ++item.running;
    return id;
  }
  return std::nullopt;
}

bool Agenda::may_start(const Queue& queue) const {
  const OperationId& first = queue.waiting.front();
  const Item& item = items_.at(first.item);
  return item.phase == first.phase && static_cast<int>(queue.running.size()) < operation(first).most_at_once &&
         !is_held_back(item.course.urgency);
}

// While the slowest phase of something more urgent runs out of work, nothing else may slow down the phases that feed
// it. The most urgent items are never held back, on no worker, so the others get their turn.
bool Agenda::is_held_back(double urgency) const {
  for (const auto& [other, flow] : flows_) {
    if (other <= urgency) return false;
    if (flow.starves()) return true;
  }
  return false;
}

void Agenda::done(const OperationId& id) {
  stop_running(id);
  Item& item = items_.at(id.item);
  if (item.is_void) return end_if_idle(id.item);
  if (--item.unfinished > 0) return;
  leave_phase(item);
  enter_phase(id.item, item);
}

void Agenda::fail(const OperationId& id, Cause cause) {
  std::vector<ChannelKey> channels = {operation(id).channel};
  stop_running(id);
  for (const ChannelKey channel : make_void(id.item, cause)) channels.push_back(channel);
  spread(std::move(channels), cause);
  end_if_idle(id.item);
}

void Agenda::drop(const OperationId& id, Cause cause) {
  stop_running(id);
  spread(make_void(id.item, cause), cause);
  end_if_idle(id.item);
}

bool Agenda::is_broken(const OperationId& id) const { return broken_.contains(operation(id).channel); }
bool Agenda::is_void(ItemId item) const { return items_.at(item).is_void; }

void Agenda::stop_running(const OperationId& id) {
  const auto queue = queues_.find(operation(id).channel);
  std::erase(queue->second.running, id);
  if (queue->second.running.empty() && queue->second.waiting.empty()) queues_.erase(queue);
  --items_.at(id.item).running;
}

// Skips phases in which there is nothing to do; ends the item after the last one.
void Agenda::enter_phase(ItemId id, Item& item) {
  while (item.phase < item.course.phases.size() && item.course.phases[item.phase].empty()) leave_phase(item);
  if (item.phase < item.course.phases.size()) {
    item.unfinished = item.course.phases[item.phase].size();
    return;
  }
  ended_.push_back({id, false});
  items_.erase(id);
}

void Agenda::leave_phase(Item& item) {
  count(item, -1);
  ++item.phase;
  count(item, 1);
}

void Agenda::count(const Item& item, int change) {
  if (item.phase > item.course.slowest) return;
  const auto flow = flows_.try_emplace(item.course.urgency).first;
  (item.phase < item.course.slowest ? flow->second.before : flow->second.within) += change;
  if (flow->second.before == 0 && flow->second.within == 0) flows_.erase(flow);
}

// Returns the channels of the operations that it will never start; none where it is void already.
std::vector<Agenda::ChannelKey> Agenda::make_void(ItemId id, Cause cause) {
  Item& item = items_.at(id);
  if (item.is_void) return {};
  item.is_void = true;
  count(item, -1);
  void_.push_back({id, cause});
  std::vector<ChannelKey> channels;
  for (std::size_t phase = 0; phase < item.started.size(); ++phase) {
    for (std::size_t index = 0; index < item.started[phase].size(); ++index) {
      if (!item.started[phase][index]) channels.push_back(item.course.phases[phase][index].channel);
    }
  }
  return channels;
}

// Breaks these channels, and follows the failure to the items that use them and on to the channels of these.
// Invariant: whoever has an unfinished operation in a broken channel is void, and nothing waits in it.
void Agenda::spread(std::vector<ChannelKey> channels, Cause cause) {
  std::vector<ItemId> reached;
  while (!channels.empty()) {
    const ChannelKey channel = channels.back();
    channels.pop_back();
    if (!broken_.try_emplace(channel, cause).second) continue;
    newly_broken_.push_back({channel, cause});
    for (const ItemId id : clear(channel)) {
      for (const ChannelKey next : make_void(id, cause)) channels.push_back(next);
      reached.push_back(id);
    }
  }
  for (const ItemId id : reached) end_if_idle(id);
}

// Takes out of the channel's queue what waits there. Returns the items that wait or run in it.
std::vector<Agenda::ItemId> Agenda::clear(ChannelKey channel) {
  const auto queue = queues_.find(channel);
  if (queue == queues_.end()) return {};
  std::vector<ItemId> items;
  for (const OperationId& id : queue->second.running) items.push_back(id.item);
  for (const OperationId& id : queue->second.waiting) items.push_back(id.item);
  queue->second.waiting.clear();
  if (queue->second.running.empty()) queues_.erase(queue);
  return items;
}

void Agenda::end_if_idle(ItemId id) {
  const auto item = items_.find(id);
  if (item == items_.end() || !item->second.is_void || item->second.running > 0) return;
  ended_.push_back({id, true});
  items_.erase(item);
}

}  // namespace dssync
