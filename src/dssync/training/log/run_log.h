// The log of a run: one JSON object per line. "started" comes first (and "resumed" where a run goes on), then
// "network", "iteration", "evaluated", "checkpoint" and "traffic", and exactly one of "finished", "failed" or
// "interrupted" last. runlog/schema.h has the keys.
//
// A line is written whole or not at all, and is in the file when the call returns, so that a killed run leaves a valid
// log. Thread-safe: whoever watches for signals may end the log while the training thread writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

#include "dssync/monitor/plan_change.h"
#include "dssync/runlog/schema.h"
#include "dssync/training/log/reports.h"

namespace dssync {

class RunLog {
 public:
  enum class Mode {
    kReplace,  // a file that exists is emptied
    kAppend,   // it goes on, for a resumed run; a line that was cut off by a crash is removed
  };

  // Throws InputError that names the file where it cannot be opened for writing.
  RunLog(std::filesystem::path file, Mode mode);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // Each appends one line. Throw Error that names the file and the cause where it cannot be written; what is in the
  // file stays valid. After the last line they do nothing.
  void started(const StartReport& report);  // "resumed" where there are earlier lines
  void network(const NetworkReport& report);
  void iteration(const IterationReport& report);
  void evaluated(const EvaluationReport& report);
  void replanned(const PlanChange& change, double seconds);  // since the start of the run
  void checkpoint(const CheckpointReport& report);
  void traffic(const TrafficReport& report);

  // The last line. Only the first of these calls writes one.
  void finished(const TrainResult& result);
  void failed(const std::string& cause);
  void interrupted(const std::string& cause);

 private:
  class Line;
  void append(const Line& line, bool last);
  void append_end(LogEvent event, const std::string& cause);
  void write_whole(const std::string& text);
  void drop_torn_line();

  const std::filesystem::path file_;
  std::mutex mutex_;
  int handle_ = -1;
  bool goes_on_ = false;   // it had lines when it was opened
  std::int64_t size_ = 0;  // of the whole lines
  bool ended_ = false;
  std::atomic<std::int64_t> last_iteration_{0};  // read by whoever ends the log
};

}  // namespace dssync
