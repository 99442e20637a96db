#include "train/train_watcher.h"

namespace dssync::cli {

TrainWatcher::TrainWatcher(const TrainCommand& command, bool is_shown, WorkerEnding& ending)
    : is_shown_(is_shown), ending_(ending), line_(standard_error_screen(), LiveLine::Clock::now()) {
  summary_.log = command.training.log;
  summary_.trace = command.training.trace;
  summary_.checkpoint = command.training.checkpoint_folder;
}

void TrainWatcher::log_opened(const std::shared_ptr<RunLog>& log) {
  ending_.set_on_end([log](WorkerEnding::Kind kind, const std::string& cause) {
    kind == WorkerEnding::Kind::kFailed ? log->failed(cause) : log->interrupted(cause);
  });
}

void TrainWatcher::started(const StartReport& report) {
  summary_.start = report;
  if (is_shown_) line_.note(start_as_text(report));
}

void TrainWatcher::iteration(const IterationReport& report) {
  if (!is_shown_) return;
  summary_.figures.add(report);
  recent_.add(report);
  const LiveLine::Clock::time_point now = LiveLine::Clock::now();
  if (!line_.is_due(now)) return;
  line_.show(progress_text(recent_, summary_.start), now);
  recent_ = {};
}

void TrainWatcher::evaluated(const EvaluationReport& report) {
  summary_.consolidated_disagreement = report.consolidated_disagreement;
  if (is_shown_) line_.note(evaluation_as_text(report));
}

void TrainWatcher::replanned(const PlanChange& change) {
  if (is_shown_) line_.note(replanned_as_text(change));
}

const TrainSummary& TrainWatcher::finish(const TrainResult& result) {
  line_.clear();
  summary_.result = result;
  return summary_;
}

}  // namespace dssync::cli
