#include "dssync/comm/neighbour_watch.h"

namespace dssync {

NeighbourWatch::NeighbourWatch(Rank self, int size, Duration beat, Duration silence)
    : self_(self), size_(size), beat_(beat), silence_(silence) {}

void NeighbourWatch::begin_look(Time now) {
  if (now - last_look_ > 2 * beat_) {
    for (auto& [rank, observation] : seen_) observation.since = now;
  }
  last_look_ = now;
}

std::vector<Rank> NeighbourWatch::watched() const {
  std::vector<Rank> result;
  for (int step = 1; step < size_ && result.size() < kNeighbours; ++step) {
    const Rank rank = (self_ + step) % size_;
    if (!left_out_.contains(rank)) result.push_back(rank);
  }
  return result;
}

void NeighbourWatch::saw(Rank rank, const std::string& pulse, Time now) {
  const auto [entry, is_new] = seen_.try_emplace(rank, Observation{pulse, now});
  if (!is_new && entry->second.pulse != pulse) entry->second = {pulse, now};
}

void NeighbourWatch::leave_out(Rank rank) {
  left_out_.insert(rank);
  seen_.erase(rank);
}

std::vector<Rank> NeighbourWatch::silent(Time now) const {
  std::vector<Rank> result;
  for (const Rank rank : watched()) {
    const auto entry = seen_.find(rank);
    if (entry != seen_.end() && now - entry->second.since >= silence_) result.push_back(rank);
  }
  return result;
}

}  // namespace dssync
