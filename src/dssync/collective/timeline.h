// What happened when on one worker: computing, stages of averages, waiting. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "dssync/topology/topology.h"

namespace dssync {

using Clock = std::chrono::steady_clock;

struct Span {
  enum class Kind { kCompute, kStage, kWait, kChange };
  Kind kind = Kind::kCompute;
  std::string name;  // "forward and backward", "reduce-scatter", "waiting for averages", why the plan changed
  std::int64_t iteration = 0;
  Clock::time_point start{};
  Clock::time_point end{};
  // Of a stage:
  int round = -1;  // index in the cycle; -1 outside of it (a global average)
  std::vector<Rank> members{};
  std::int64_t bytes = 0;  // sent by this worker
};

class Timeline {
 public:
  // Keeps the first `capacity` spans and counts the others.
  explicit Timeline(std::size_t capacity = 100'000) : capacity_(capacity) {}

  void record(Span span);
  std::vector<Span> spans() const;
  std::size_t dropped() const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  std::size_t dropped_ = 0;
};

// Events of the Chrome trace format (Perfetto reads it), comma-separated without brackets: a process per worker, one
// track for the training thread and one for every chain of stages. Times count from `origin`.
std::string trace_events(const std::vector<Span>& spans, Rank rank, Clock::time_point origin);

}  // namespace dssync
