// For tests: workers as threads of one process, connected over loopback.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <typeinfo>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "dssync/comm/world.h"

namespace dssync::testing {

// Runs `work` once per rank, each in its own thread with its own World on one store. Returns when all have ended, and
// rethrows the exception of the lowest rank that threw one.
void run_ranks(int size, const std::function<void(World&)>& work,
               std::chrono::milliseconds timeout = std::chrono::seconds(30));

// The same, but rank `lost` is lost in the process group for `use`: it connects with the others, and then fails instead
// of taking part. Its connections stay open. Returns what the others' PeerErrors said, by rank; nothing for `lost`.
std::vector<std::string> run_ranks_losing(Rank lost, const std::string& use, int size,
                                          const std::function<void(World&)>& work);

// A store within this process.
inline dssync::Store hash_store() { return c10::make_intrusive<c10d::HashStore>(); }

// A connection to a store that can stand still, as that of a stopped process does, or to one. Thread-safe.
class StoppableConnection : public c10d::HashStore {
 public:
  explicit StoppableConnection(dssync::Store store) : store_(std::move(store)) {}
  // No thread may be in a call when it is destroyed.

  void stop();
  void go_on();

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool check(const std::vector<std::string>& keys) override;

 private:
  void pass();

  const dssync::Store store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
};

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
