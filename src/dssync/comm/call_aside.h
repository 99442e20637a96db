// Calls something that cannot be interrupted, and goes on without it where it has become useless.
#pragma once

#include <chrono>
#include <future>
#include <thread>
#include <type_traits>
#include <utility>

namespace dssync {

// What `work` returns or throws, called on a thread of its own. Meanwhile `look` is called every 20 ms; where it
// throws, the exception is the outcome, and `work` is left to end by itself: it must own all that it uses.
template <typename Work, typename Look>
auto call_aside(Work work, Look look) {
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto outcome = task.get_future();
  std::thread(std::move(task)).detach();
  while (outcome.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) look();
  return outcome.get();
}

}  // namespace dssync
