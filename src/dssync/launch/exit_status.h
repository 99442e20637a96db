// What the exit status of a program or a worker of dssync says, and how an exception becomes one. Thread-safe.
#pragma once

#include <functional>
#include <string>

namespace dssync {

struct ExitStatus {
  static constexpr int kDone = 0;
  static constexpr int kFailed = 1;
  static constexpr int kBadInput = 2;
};

// Tells people what went wrong. Returns `status`.
using Complain = std::function<int(const std::string& message, int status)>;

// Calls `work`, which returns an exit status. An exception becomes a status by its kind, and `complain` is told its
// message.
int exit_status_of(const std::function<int()>& work, const Complain& complain);

}  // namespace dssync
