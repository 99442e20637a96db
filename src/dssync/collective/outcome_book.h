// How the averages of an engine fare: under way, done, or void, and of which causes it is known why. Plain bookkeeping.
// Owned by the conductor, under its lock. Not thread-safe.
#pragma once

#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "dssync/collective/agenda.h"
#include "dssync/collective/engine.h"

namespace dssync {

class OutcomeBook {
 public:
  using Cause = Agenda::Cause;

  void add(AverageId average) { entries_[average]; }
  void set_void(AverageId average, Cause cause);
  // Nothing of it is under way any more.
  void set_ended(AverageId average);
  void explain(Cause cause, std::exception_ptr error) { errors_[cause] = std::move(error); }

  bool all_ended() const;

  // Whether Engine::wait() has waited long enough, for all averages or `only` for these.
  bool is_settled(Engine::Until until, const std::vector<AverageId>* only = nullptr) const;

  // The outcomes that are known and have not been told yet.
  std::vector<Outcome> tell();

 private:
  struct Entry {
    std::optional<Cause> cause;  // of a void average; the first one
    bool has_ended = false;
    bool is_told = false;
  };

  bool is_known(const Entry& entry) const { return entry.has_ended && (is_known_void(entry) || is_known_done(entry)); }
  bool is_known_void(const Entry& entry) const { return entry.cause && errors_.contains(*entry.cause); }
  bool is_known_done(const Entry& entry) const { return !entry.cause && entry.has_ended; }

  std::map<AverageId, Entry> entries_;  // those that have not both ended and been told
  std::map<Cause, std::exception_ptr> errors_;
};

}  // namespace dssync
