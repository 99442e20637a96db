// Runs averages in the background: many at a time, each a chain of stages, every stage as soon as the ones before it
// are done. The stages themselves run in c10d's threads.
//
// Owned and called by one thread, which drives the averages itself while it starts them and waits for them; in between
// a thread of the engine does. Every worker hands in the same averages in the same order; this, and one process group
// per use, keeps operations matched between workers (docs/runtime.md).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/collective/explain.h"
#include "dssync/collective/program/chain.h"
#include "dssync/collective/timeline.h"

namespace dssync {

class Conductor;

// One operation of a plan's stage, as it was at this worker.
struct StageUse {
  int stage = 0;  // Step::stage
  Clock::time_point start{};
  Clock::time_point end{};
  std::int64_t bytes = 0;  // that this worker sent
};

using AverageId = std::int64_t;  // ascending, in the order in which averages are handed in

// How an average ended: done, or void with its cause. The slices of a void average may hold sums of some members, and
// of some elements only: nobody may use their values. Where a channel was cut, c10d may touch them a moment longer, so
// the next average gets other memory.
struct Outcome {
  AverageId average = 0;
  std::exception_ptr cause{};  // null: done. What Explain said of a failed channel, or what failed at this worker.

  bool is_void() const { return cause != nullptr; }
};

// Throws the cause of the first one that is void.
void require_done(const std::vector<Outcome>& outcomes);

// How an average travels, as far as its chain has codecs.
struct Travel {
  // Of what is averaged; the same on all members, and another one in other groups. With the iteration it decides how
  // values are rounded, so that a run can be repeated to the bit.
  std::uint64_t label = 0;
  Codec shortest = Codec::kInt4;  // stages with a shorter one use this instead
  // Error feedback, for an average of one slice: like it. What encoding takes away from what this worker brings into
  // the sum is added to it, for the caller to bring it in the next time.
  at::Tensor lost{};
};

// A failure makes those averages void that use the channel that failed, and those that cannot be kept in order without
// it (agenda.h). The others go on, and so does the engine: it takes new averages, and those in whole channels will be
// done. Channels that failed are cut, so that their other members learn of it; whoever wants all of them cut does so.
class Engine {
 public:
  // `timeline` may be null; otherwise it must outlive the engine.
  Engine(Explain explain, Timeline* timeline);

  // Waits for what is under way; after a failure it cuts that.
  ~Engine();

  // Starts to replace the slices (contiguous, one dimension, one type) by their averages over the chain's group. They
  // must not be touched before wait() has returned the outcome. Small slices travel as one and long ones in pieces
  // (pieces.h). All members end with the same bits. `together` is what the network needs for all averages that are
  // started with this one.
  AverageId average(at::TensorList slices, const std::shared_ptr<const Chain>& chain, std::int64_t iteration,
                    Seconds together, const Travel& travel = {});

  enum class Until {
    kAllEnded,   // nothing touches any slice any more
    kFirstVoid,  // or, where one is void, at once: for whoever gives up then. Slices may still be in use, and until the
                 // next call of average() or wait() nobody explains what else fails.
  };

  // The outcomes of the averages that no wait() has told of yet, ascending: all of them, but for those that are still
  // under way after kFirstVoid.
  [[nodiscard]] std::vector<Outcome> wait(Until until = Until::kAllEnded);

  // The same, but returns when these averages have ended, whatever else is under way. Tells of all outcomes that are
  // known then.
  [[nodiscard]] std::vector<Outcome> wait(const std::vector<AverageId>& averages, Until until);

  // By this worker, in all averages since the last call.
  std::int64_t take_bytes_sent();

  // The operations of numbered stages that were done since the last call.
  std::vector<StageUse> take_stage_uses();

 private:
  std::unique_ptr<Conductor> conductor_;
  AverageId next_ = 0;
};

}  // namespace dssync
