// How far the replicas are apart, judged from how far a worker's averages move it: no communication of its own.
//
// Averaging is a projection, so an iteration's averages shrink the disagreement by exactly the mean squared move. In
// the long run the moves therefore make up for what the steps bring in, and the disagreement is S times that
// (docs/mixing.md). Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "dssync/sync/tensor_set.h"

namespace dssync {

class DisagreementMeter {
 public:
  // `cycle`: rounds in the schedule, over which moves are averaged. `steady`: S of the schedule, as it is carried out.
  // `brought_in`: what a step adds to the disagreement, in the same unit (step_disagreement).
  DisagreementMeter(std::size_t cycle, double steady, double brought_in);

  // One iteration's squared move. Returns the estimate.
  double add(double squared_move);

  // The moves that the estimate rests on, the latest last; of a cycle at most.
  std::vector<double> moves() const { return {moves_.begin(), moves_.end()}; }
  void set_moves(const std::vector<double>& moves);

 private:
  std::size_t cycle_;
  double factor_;
  std::deque<double> moves_;
};

// Some thousand elements, evenly spread over flat tensors, as they were: enough to know how far the whole moves.
class MoveSample {
 public:
  // Keeps the tensors.
  explicit MoveSample(const std::vector<Flat>& flats);

  // Remembers what the sampled elements of this slice are now.
  void note(std::size_t number, const FlatSlice& slice);

  // Squared move of all that was noted since, and squared norm of where it is now: once for each note.
  std::pair<double, double> measure() const;

 private:
  struct Note {
    FlatSlice slice;
    at::Tensor before;
  };

  at::Tensor thinned(const FlatSlice& slice) const;

  const std::vector<Flat> flats_;
  std::map<std::size_t, Note> notes_;  // by number
};

}  // namespace dssync
