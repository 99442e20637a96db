// How a worker of `train` ends before its time: what is told to whom. Thread-safe: the training thread says what there
// is to end, and the thread that waits for signals ends it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "dssync/launch/local_workers.h"
#include "dssync/runtime/world.h"
#include "dssync/training/run_log.h"

namespace dssync::cli {

// "dssync train: rank 3: MESSAGE" on standard error. Returns `status`.
int complain_as(int rank, const std::string& message, int status);

class TrainEnding {
 public:
  // `launcher` is null where another program started this worker.
  TrainEnding(int rank, LauncherChannel* launcher) : rank_(rank), launcher_(launcher) {}

  void set_log(std::shared_ptr<RunLog> log);
  void set_world(World* world);  // null: there is none any more

  // What to do on a signal: ends the log, tells those who do not know yet, and ends the process.
  [[noreturn]] void stop(int signal);

 private:
  void end_log(const std::string& cause, bool is_failure);
  void tell_others(const std::string& cause);

  const int rank_;
  LauncherChannel* const launcher_;
  std::mutex mutex_;
  std::shared_ptr<RunLog> log_;
  World* world_ = nullptr;
};

}  // namespace dssync::cli
