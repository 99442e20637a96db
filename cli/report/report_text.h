// The comparison of training runs for people, as `dssync report` prints it.
#pragma once

#include <string>

#include "dssync/report/comparison.h"

namespace dssync::cli {

// A row for each group of runs, and the conclusion.
std::string comparison_as_text(const Comparison& comparison);

}  // namespace dssync::cli
