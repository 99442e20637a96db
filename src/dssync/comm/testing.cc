#include "dssync/comm/testing.h"

#include <csignal>
#include <exception>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace dssync::testing {

void run_ranks(int size, const std::function<void(World&)>& work, std::chrono::milliseconds timeout) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error of the call, not the end of the process
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        World world(store, {.rank = rank, .size = size, .timeout = timeout});
        work(world);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dssync::testing
