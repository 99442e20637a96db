// Carries out `bench`: as one worker, where the environment says which, or as the launcher of all.
#pragma once

#include "bench/bench.h"

namespace dssync::cli {

// The exit status. Errors of workers are told by them; whatever is wrong before any worker starts is thrown.
int run_bench(const BenchCommand& command);

}  // namespace dssync::cli
