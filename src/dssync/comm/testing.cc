#include "dssync/comm/testing.h"

#include <exception>
#include <latch>
#include <stdexcept>
#include <thread>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "dssync/comm/process_signals.h"

namespace dssync::testing {

void StoppableConnection::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
}

void StoppableConnection::go_on() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = false;
  changed_.notify_all();
}

void StoppableConnection::pass() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_stopped_; });
}

void StoppableConnection::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  pass();
  store_->set(key, value);
}

std::vector<std::uint8_t> StoppableConnection::get(const std::string& key) {
  pass();
  return store_->get(key);
}

std::int64_t StoppableConnection::add(const std::string& key, std::int64_t value) {
  pass();
  return store_->add(key, value);
}

bool StoppableConnection::check(const std::vector<std::string>& keys) {
  pass();
  return store_->check(keys);
}

void run_ranks(int size, const std::function<void(World&)>& work, std::chrono::milliseconds timeout) {
  ignore_broken_pipes();
  const Store store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        World world(store, {.rank = rank, .size = size, .timeout = timeout}, store);
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

std::vector<std::string> run_ranks_losing(Rank lost, const std::string& use, int size,
                                          const std::function<void(World&)>& work) {
  constexpr std::chrono::seconds kTimeout(60);  // after which they would be named anyway
  ignore_broken_pipes();
  const Store store = hash_store();
  std::latch others(size - 1);
  std::vector<std::string> messages(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      World* self = nullptr;
      const auto connect_and_fail = [&](const std::vector<Rank>& members, int index, const std::string& name) {
        const auto meeting = c10::make_intrusive<c10d::PrefixStore>(name, self->store());
        Channel channel = gloo_groups(self->address(), kTimeout)(meeting, index, static_cast<int>(members.size()));
        if (name.find("/" + use + "/") == std::string::npos) return channel;
        self->report_failure("lost its data");
        others.wait();
        throw std::runtime_error("lost its data");
      };
      WorldOptions options{.rank = rank, .size = size, .timeout = kTimeout};
      if (rank == lost) options.make_channel = connect_and_fail;
      World world(store, options, store);
      self = &world;
      const std::string message = message_of<PeerError>([&] { work(world); });
      if (rank == lost) return;
      messages[static_cast<std::size_t>(rank)] = message;
      others.count_down();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

}  // namespace dssync::testing
