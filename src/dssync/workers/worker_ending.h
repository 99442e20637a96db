// How a worker ends before its time: what is told to whom. Thread-safe: the thread that does the job says what there is
// to end, and the thread that waits for signals ends it.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "dssync/comm/world.h"
#include "dssync/launch/exit_status.h"
#include "dssync/launch/local_workers.h"

namespace dssync {

class WorkerEnding {
 public:
  enum class Kind {
    kInterrupted,  // this worker, or its launcher, got a signal
    kFailed,       // the launcher ends the run because a worker was lost
  };
  using OnEnd = std::function<void(Kind kind, const std::string& cause)>;

  // `complain` is called by any thread. `launcher` is null where another program started this worker.
  WorkerEnding(Complain complain, LauncherChannel* launcher) : complain_(std::move(complain)), launcher_(launcher) {}

  // Called once if this worker is told to stop, on another thread, before the process ends: for what must not stay
  // half-written. What it throws is complained about. Null: there is nothing to end any more.
  void set_on_end(OnEnd on_end);
  void set_world(World* world);  // null: there is none any more

  // What to do on a signal: calls what set_on_end was given, tells those who do not know yet, and ends the process.
  [[noreturn]] void stop(int signal);

 private:
  void call_on_end(Kind kind, const std::string& cause);
  void tell_others(const std::string& cause);

  const Complain complain_;
  LauncherChannel* const launcher_;
  std::mutex mutex_;
  OnEnd on_end_;
  World* world_ = nullptr;
};

}  // namespace dssync
