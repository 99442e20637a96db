// Lets a worker end in an orderly way when it is told to stop: a thread waits for the signal and calls a handler, which
// may do what a signal handler may not (write a log, lock a mutex) and usually ends the process with _exit.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace dssync {

class StopSignal {
 public:
  // Calls `handler(signal)` once, on a thread of its own, at the first of these signals; later ones do nothing. Signals
  // that the process was told to ignore (nohup) stay ignored. At most one StopSignal or LocalWorkers exists at a time.
  StopSignal(const std::vector<int>& signals, std::function<void(int)> handler);
  ~StopSignal();  // stops watching; waits for a handler that is running
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace dssync
