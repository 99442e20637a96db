// What rank 0 shows of a run while it goes on, and collects for the summary. On other ranks it shows nothing. For the
// training thread.
#pragma once

#include "dssync/training/trainer.h"
#include "dssync/workers/worker_ending.h"
#include "terminal/live_line.h"
#include "train/train.h"
#include "train/train_figures.h"
#include "train/train_summary.h"

namespace dssync::cli {

class TrainWatcher final : public ProgressSink {
 public:
  TrainWatcher(const TrainCommand& command, bool is_shown, WorkerEnding& ending);

  void log_opened(const std::shared_ptr<RunLog>& log) override;
  void started(const StartReport& report) override;
  void iteration(const IterationReport& report) override;
  void evaluated(const EvaluationReport& report) override;
  void replanned(const PlanChange& change) override;

  // After the last report.
  const TrainSummary& finish(const TrainResult& result);

 private:
  const bool is_shown_;
  WorkerEnding& ending_;
  TrainFigures recent_;  // since the live line was shown
  TrainSummary summary_;
  LiveLine line_;
};

}  // namespace dssync::cli
