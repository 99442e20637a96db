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

bool OutcomeBook::is_settled(Engine::Until until) const {
  bool are_all_known = true;
  for (const auto& [average, entry] : entries_) {
    if (until == Engine::Until::kFirstVoid && is_known_void(entry) && !entry.is_told) return true;
    are_all_known = are_all_known && entry.has_ended && (is_known_void(entry) || is_known_done(entry));
  }
  return are_all_known;
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
