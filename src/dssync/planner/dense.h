// The mixing figures by dense matrices, straight from their definitions: what the tests compare the planner with. Not
// installed.
#pragma once

#include "dssync/planner/mixing.h"
#include "dssync/planner/schedule.h"

namespace dssync::testing {

// cycle_norm as the root of the largest eigenvalue (Jacobi) of P^T P for P = W_T ... W_1 - J, and S from the fixed
// point of the covariance (doubling). O(N^3): for up to some hundred workers.
Mixing dense_mixing(const Schedule& schedule, int workers);

}  // namespace dssync::testing
