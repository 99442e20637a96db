// A page that shows and compares training runs: one self-contained HTML file, without anything from elsewhere, that
// needs no script to be complete. docs/report.md says what it shows. Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dssync/report/run.h"

namespace dssync {

struct ReportOptions {
  // To which the times are compared, 0 to 1. None: the highest whole or half percent that all runs which finished
  // reached.
  std::optional<double> accuracy;
};

// The same runs give the same page, byte for byte. REQUIRES: at least one run.
std::string make_report(const std::vector<TrainingRun>& runs, const ReportOptions& options);

}  // namespace dssync
