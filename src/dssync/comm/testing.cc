#include "dssync/comm/testing.h"

#include <csignal>
#include <exception>
#include <thread>

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
  std::signal(SIGPIPE, SIG_IGN);  // a peer that goes away is an error of the call, not the end of the process
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

}  // namespace dssync::testing
