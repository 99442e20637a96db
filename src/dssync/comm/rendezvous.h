// How workers find each other: which run the store serves, whether this worker belongs to it, and who else is there.
//
// A run is announced under one well-known key: by whoever serves the store, else by rank 0. Everybody compares it with
// what its launcher said. A process of another run, of an earlier attempt, or with a rank that is taken is refused, by
// name. Collective, and for one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "dssync/comm/c10d/c10d.h"
#include "dssync/comm/membership.h"

namespace dssync {

// A worker that wants to take part.
struct Candidate {
  Rank rank = 0;
  int size = 1;
  RunId run;                                  // as its launcher said; no name: it takes part in the run that it finds
  std::string address = "127.0.0.1";          // of its interface
  bool serves_store = false;
  std::string store_place;                    // "HOST:PORT", for messages
  std::chrono::milliseconds timeout{60'000};  // for each of the two steps
};

// Says that `store` serves this run of `size` workers: before any of them comes.
void announce_run(c10d::Store& store, const RunId& run, int size);

// The run that the store serves, and in which the candidate belongs; rank 0 announces it where nobody has, and makes a
// name where nobody said one. Throws InputError where the candidate belongs to another run, attempt or number of
// workers, and PeerError where rank 0 does not come.
RunId find_run(c10d::Store& store, const Candidate& candidate);

// Takes the candidate's rank in the run's part of the store (store_of), and returns when all are there. Throws
// InputError where somebody has that rank already, and PeerError that names those who do not come, or who are lost.
Membership join_run(const Store& store, const RunId& run, const Candidate& candidate,
                    const std::function<std::string()>& losses);

}  // namespace dssync
