// How a worker ends before its time: what is told to whom. Thread-safe: the training thread says what there
// is to end, and the thread that waits for signals ends it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "dssync/comm/world.h"
#include "dssync/launch/local_workers.h"
#include "dssync/training/run_log.h"

namespace dssync::cli {

class WorkerEnding {
 public:
  // `launcher` is null where another program started this worker.
  WorkerEnding(std::string speaker, int rank, LauncherChannel* launcher)
      : speaker_(std::move(speaker)), rank_(rank), launcher_(launcher) {}

  void set_log(std::shared_ptr<RunLog> log);
  void set_world(World* world);  // null: there is none any more

  // "dssync train: rank 3: MESSAGE" on standard error. Returns `status`.
  int complain(const std::string& message, int status) const;

  // What to do on a signal: ends the log, tells those who do not know yet, and ends the process.
  [[noreturn]] void stop(int signal);

 private:
  void end_log(const std::string& cause, bool is_failure);
  void tell_others(const std::string& cause);

  const std::string speaker_;
  const int rank_;
  LauncherChannel* const launcher_;
  std::mutex mutex_;
  std::shared_ptr<RunLog> log_;
  World* world_ = nullptr;
};

}  // namespace dssync::cli
