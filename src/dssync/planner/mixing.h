// How well a schedule mixes: docs/mixing.md. Depends on the groups alone, not on the network. Pure; thread-safe.
#pragma once

#include "dssync/planner/schedule.h"

namespace dssync {

struct Mixing {
  // ||W_T ... W_1 - J||_2: what is left of a disagreement after one cycle, at worst. 1: some workers never meet.
  double cycle_norm = 1;
  // S: the stationary mean squared distance from the average when every iteration adds unit noise to each worker and
  // then averages. Infinite where cycle_norm is 1.
  double steady_disagreement = 0;

  // One cycle makes all replicas equal.
  bool exact() const { return cycle_norm < 1e-9; }
};

// What one step of unit noise on each of so many replicas adds to the disagreement between them.
inline double step_disagreement(int replicas) { return 1 - 1 / static_cast<double>(replicas); }

// REQUIRES: check_schedule(schedule, workers) passes.
// Exact where all rounds commute (every grid, every plan of nested regions) and for up to 256 workers; beyond that S is
// measured on a simulation with a fixed seed (standard error below one percent).
Mixing measure_mixing(const Schedule& schedule, int workers);

// The cycle_norm alone; where it is above `limit`, any figure above it, which may take far less time. REQUIRES: as
// above.
double cycle_norm(const Schedule& schedule, int workers, double limit = 1);

// S alone. REQUIRES: as above.
double steady_disagreement(const Schedule& schedule, int workers);

// S, or a figure a few percent above it where there are more than kMeasuredWorkers and the rounds don't commute; only
// then is `norm`, the cycle_norm, needed. REQUIRES: as above.
inline constexpr int kMeasuredWorkers = 64;
double estimate_disagreement(const Schedule& schedule, int workers, double norm);

// A quick lower bound of S: O(N) per round where measure_mixing may take O(N^2). REQUIRES: as above.
double disagreement_floor(const Schedule& schedule, int workers);

}  // namespace dssync
