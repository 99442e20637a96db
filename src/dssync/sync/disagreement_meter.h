// How far the replicas are apart, judged from how far a worker's averages move it: no communication of its own.
//
// Averaging is a projection, so an iteration's averages shrink the disagreement by exactly the mean squared move. In
// the long run the moves therefore make up for what the steps bring in, and the disagreement is S times that
// (docs/mixing.md). Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "dssync/sync/tensor_set.h"

namespace dssync {

class DisagreementMeter {
 public:
  // `cycle`: rounds in the schedule, over which moves are averaged. `steady`: S of the schedule, as it is carried out.
  DisagreementMeter(std::size_t cycle, double steady, int workers);

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
  explicit MoveSample(const std::vector<Flat>& flats);

  // Squared move of the whole, and squared norm of where it is now.
  std::pair<double, double> measure(const std::vector<Flat>& flats) const;

 private:
  std::vector<at::Tensor> before_;
};

}  // namespace dssync
