// Figures of a run, summed up over iterations: of the last moments for the live line, of all for the summary. Plain
// values.
#pragma once

#include <cstdint>
#include <string>

#include "dssync/training/log/reports.h"

namespace dssync::cli {

struct TrainFigures {
  std::int64_t iterations = 0;
  double seconds = 0;  // sums, of this worker
  double compute_seconds = 0;
  double sync_seconds = 0;
  double bytes_sent = 0;
  double loss = 0;
  double images = 0;  // of all workers
  IterationReport last;

  void add(const IterationReport& report);

  double per_iteration(double sum) const { return iterations == 0 ? 0 : sum / static_cast<double>(iterations); }
  double images_per_second() const { return seconds > 0 ? images / seconds : 0; }
  double sync_share() const { return seconds > 0 ? sync_seconds / seconds : 0; }
};

// "epoch 2/4  iteration 512/1872  loss 0.31  5,310 images/s  sync 18 %  disagreement 0.012".
std::string progress_text(const TrainFigures& figures, const StartReport& start);

// Three significant digits, thousands in groups: "5,310", "0.312".
std::string grouped(double number);

}  // namespace dssync::cli
