// Runs averages in the background: many at a time, each a chain of stages, every stage as soon as the ones before it
// are done. The stages themselves run in c10d's threads.
//
// Owned and called by one thread, which drives the averages itself while it starts them and waits for them; in between
// a thread of the engine does. Every worker hands in the same averages in the same order; this, and one process group
// per use, keeps operations matched between workers (docs/runtime.md).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/collective/chain.h"
#include "dssync/collective/timeline.h"

namespace dssync {

// One operation of a plan's stage, as it was at this worker.
struct StageUse {
  int stage = 0;  // Step::stage
  Clock::time_point start{};
  Clock::time_point end{};
  std::int64_t bytes = 0;  // that this worker sent
};

class Engine {
 public:
  // Both must outlive the engine; `timeline` may be null.
  Engine(World& world, Timeline* timeline);

  // Waits for what is under way, or gives it up after a failure.
  ~Engine();

  // Starts to replace the slices (contiguous, one dimension, one type) by their averages over the chain's group. They
  // must not be touched before wait() has returned. Where the chain has several phases,
  // long slices are averaged in pieces, so that one phase of a piece overlaps another phase of the next. `together` is
  // what the network needs for all averages that are started with this one, so that pieces are as few as will do.
  void average(at::TensorList slices, const std::shared_ptr<const Chain>& chain, std::int64_t iteration,
               Seconds together);

  // Operations between workers are worth their fixed costs from about this size, unless the network is slow.
  static constexpr std::int64_t kPieceBytes = 256 << 10;

  // Returns when all averages are done. Throws PeerError where one failed; the engine is of no use afterwards.
  void wait();

  // By this worker, in all averages since the last call.
  std::int64_t take_bytes_sent();

  // The operations of numbered stages that were done since the last call.
  std::vector<StageUse> take_stage_uses();

 private:
  class Conductor;
  std::unique_ptr<Conductor> conductor_;
};

}  // namespace dssync
