// A thread that does something again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace dssync {

class Ticker {
 public:
  // Calls `act` at once and then every so often, until it returns false or the ticker is destroyed, which waits for the
  // call that is under way. `act` must not throw.
  Ticker(std::chrono::milliseconds every, std::function<bool()> act)
      : thread_([this, every, act = std::move(act)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!stop.stop_requested() && act()) wake_.wait_for(lock, stop, every, [] { return false; });
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others, and asks to stop and joins
};

}  // namespace dssync
