// A limit on the disagreement that may be too tight for the largest group allowed.
#pragma once

#include "dssync/planner/planner.h"

namespace dssync::cli {

// The fastest plan within the limit; where there is none, an InputError that names the smallest limit that works.
// `group_limit` is the one that the planner was made with.
Plan best_or_explain(Planner& planner, double disagreement, int group_limit);

}  // namespace dssync::cli
