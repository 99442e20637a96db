// One Chrome trace of all workers, for Perfetto or chrome://tracing. Not thread-safe.
#pragma once

#include <filesystem>

#include "dssync/collective/timeline.h"
#include "dssync/training/exchange.h"

namespace dssync {

// Collective: the same moment on all workers, as their own steady clocks show it. On one machine it is exact; between
// machines it is as good as their system clocks.
Clock::time_point common_origin(Exchange& exchange);

// Collective: rank 0 writes the spans of all workers to the file. Throws Error that names it where it cannot be
// written.
void write_trace(Exchange& exchange, int rank, const Timeline& timeline, Clock::time_point origin,
                 const std::filesystem::path& file);

}  // namespace dssync
