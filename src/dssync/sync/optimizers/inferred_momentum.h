// Keeps Adam's momentum together without sending it. An average moves this worker's parameters by d. That is what its
// own noise has done since it last met the others, and tells how far its momentum is from theirs (docs/convergence.md).
// Changes first moments alone. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/sync/replica.h"
#include "dssync/sync/take_over.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

// How much of the difference between two momentums, of running means that keep `beta`, lies in the sum of the steps
// that began when they were equal: by regression, 1 for one step, about 1.2 / steps for many.
double share_of_momentum(std::int64_t steps, double beta);

class InferredMomentum {
 public:
  // `layout`: of the flat parameters. For so many replicas whose steps are corrected (noise_correction.h); 1 where they
  // are not.
  InferredMomentum(const std::vector<Flat>& layout, std::size_t parameters, int replicas);

  // `all` is about to move so, and `slice` is a part of it, which everyone averaged last so many iterations ago.
  // `steps`: the last ones of the parameters.
  void apply(const std::vector<AdamStep>& steps, const FlatSlice& all, const TakeOver::Move& move,
             const FlatSlice& slice, std::int64_t since_common) const;

 private:
  struct Place {
    std::size_t flat = 0;
    std::int64_t offset = 0;
  };

  std::vector<Place> places_;  // by parameter
  int replicas_;
};

}  // namespace dssync
