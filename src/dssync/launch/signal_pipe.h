// Signals as bytes in a pipe, so that a thread can wait for them along with other things.
//
// Handlers and not a blocked mask with signalfd: OpenBLAS starts threads before main(), and a signal that such a thread
// does not block would end the process there. At most one at a time in a process. For one thread.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

namespace dssync {

class SignalPipe {
 public:
  // Catches these signals, without those that the process was told to ignore (nohup) when it started; SIGCHLD always.
  explicit SignalPipe(const std::vector<int>& signals);
  ~SignalPipe();  // the signals do again what they did before
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  // Returns when a signal came, `other` is readable, or the deadline has passed.
  void wait(const Deadline& deadline, int other = -1) const;

  // The next signal that came, without waiting.
  std::optional<int> next();

  // In a child after fork: lets go of the parent's pipe and handlers. The signals do what they did before.
  void abandon();

 private:
  void restore();

  int read_end_ = -1;
  int write_end_ = -1;
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace dssync
