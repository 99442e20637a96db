// Which workers one worker watches, and which of them have been silent for too long. Knows no clock and no store: it is
// told what was seen, and when. Not thread-safe.
//
// The workers stand in a ring. Each watches the next two that are still there, so that a loss is noticed as long as not
// both who watch it are lost with it; and if they are, the one before them watches further once it knows.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

class NeighbourWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr int kNeighbours = 2;

  // Looks are due every `beat`. A worker whose pulse stands still for `silence` is silent.
  NeighbourWatch(Rank self, int size, Duration beat, Duration silence);

  // Before each look. After a look that came late (by more than a beat) this worker may have been the one that stood
  // still, so that all observations start anew.
  void begin_look(Time now);

  // Ascending around the ring.
  std::vector<Rank> watched() const;
  // Whether a pulse of it was seen; one that has not begun to beat is not silent.
  bool has_seen(Rank rank) const { return seen_.contains(rank); }
  void saw(Rank rank, const std::string& pulse, Time now);

  // It has left or is lost; the next one takes its place.
  void leave_out(Rank rank);

  std::vector<Rank> silent(Time now) const;

 private:
  struct Observation {
    std::string pulse;
    Time since;  // when this pulse was seen first
  };

  const Rank self_;
  const int size_;
  const Duration beat_;
  const Duration silence_;
  Time last_look_{};
  std::map<Rank, Observation> seen_;
  std::set<Rank> left_out_;
};

}  // namespace dssync
