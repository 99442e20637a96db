// For tests: workers as threads of one process, connected over loopback.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <typeinfo>

#include "dssync/comm/world.h"

namespace dssync::testing {

// Runs `work` once per rank, each in its own thread with its own World on one store. Returns when all have ended, and
// rethrows the exception of the lowest rank that threw one.
void run_ranks(int size, const std::function<void(World&)>& work,
               std::chrono::milliseconds timeout = std::chrono::seconds(30));

// What `Expected`, and nothing derived from or above it, said.
template <typename Expected, typename Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    return typeid(error) == typeid(Expected) ? error.what() : std::string("another exception: ") + error.what();
  }
  return "no exception";
}

}  // namespace dssync::testing
