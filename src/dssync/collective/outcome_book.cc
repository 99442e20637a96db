#include "dssync/collective/outcome_book.h"

#include <algorithm>
#include <utility>

namespace dssync {

void OutcomeBook::set_void(AverageId average, Cause cause) {
  Entry& entry = entries_.at(average);
  if (!entry.cause) entry.cause = cause;
}

void OutcomeBook::set_ended(AverageId average) {
  const auto entry = entries_.find(average);
  entry->second.has_ended = true;
  if (entry->second.is_told) entries_.erase(entry);
}

bool OutcomeBook::all_ended() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second.has_ended; });
}

bool OutcomeBook::is_settled(Engine::Until until, const std::vector<AverageId>* only) const {
  const auto is_first_void = [this](const auto& entry) { return is_known_void(entry.second) && !entry.second.is_told; };
  if (until == Engine::Until::kFirstVoid && std::any_of(entries_.begin(), entries_.end(), is_first_void)) return true;
  if (only == nullptr) {
    return std::all_of(entries_.begin(), entries_.end(), [this](const auto& entry) { return is_known(entry.second); });
  }
  return std::all_of(only->begin(), only->end(), [this](AverageId average) {
    const auto entry = entries_.find(average);
    return entry == entries_.end() || is_known(entry->second);
  });
}

std::vector<Outcome> OutcomeBook::tell() {
  std::vector<Outcome> outcomes;
  for (auto& [average, entry] : entries_) {
    if (entry.is_told || !(is_known_void(entry) || is_known_done(entry))) continue;
    outcomes.push_back({average, entry.cause ? errors_.at(*entry.cause) : nullptr});
    entry.is_told = true;
  }
  std::erase_if(entries_, [](const auto& entry) { return entry.second.has_ended && entry.second.is_told; });
  return outcomes;
}

}  // namespace dssync
