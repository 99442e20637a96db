// The lines of iterations, of which a log may have millions: read without building a JSON document. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include "dssync/report/run.h"

namespace dssync {

struct IterationLine {
  IterationSample sample;
  double bytes_sent = 0;
};

// Nothing where the line is not an "iteration" as dssync train writes it, with plain values alone: it may still be
// valid.
std::optional<IterationLine> read_iteration_line(const std::string& line);

// The limits that keep charts readable and sums finite; what is beyond is moved to the limit, or is no number.
double sound(double value);
float sound_sample(double value);
std::int64_t sound_whole(double value);

}  // namespace dssync
