#include "dssync/comm/bounded_store.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace dssync {

using std::chrono::milliseconds;

// Where callers leave one call after another for the thread.
struct BoundedStore::Desk {
  explicit Desk(dssync::Store at) : store(std::move(at)) {}

  const dssync::Store store;
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void(c10d::Store&)> call;  // to be made
  std::int64_t given = 0;                  // calls so far
  std::int64_t answered = 0;
  bool is_closed = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_closed || call; });
      if (!call) return;
      std::function<void(c10d::Store&)> taken = std::exchange(call, nullptr);
      lock.unlock();
      taken(*store);
      taken = nullptr;
      lock.lock();
      answered = given;
      changed.notify_all();
    }
  }

  // Counts only time in which this process ran: one that was stopped finds the store's answer when it goes on.
  template <typename Condition>
  void await(std::unique_lock<std::mutex>& lock, milliseconds timeout, Condition condition) {
    using Clock = std::chrono::steady_clock;
    constexpr milliseconds kSlice{100};
    Clock::duration left = timeout;
    while (!condition()) {
      if (left <= Clock::duration::zero()) {
        throw StoreSilence(
            fmt::format("the store has not answered for {} s", static_cast<double>(timeout.count()) / 1000));
      }
      const Clock::time_point start = Clock::now();
      changed.wait_for(lock, std::min<Clock::duration>(left, kSlice));
      left -= std::min<Clock::duration>(Clock::now() - start, 2 * kSlice);
    }
  }
};

BoundedStore::BoundedStore(dssync::Store store, milliseconds timeout, Losses losses)
    : c10d::Store(timeout),
      desk_(std::make_shared<Desk>(std::move(store))),
      losses_(std::move(losses)),
      thread_([desk = desk_] { desk->serve(); }) {}

BoundedStore::~BoundedStore() {
  bool is_idle = false;
  {
    const std::lock_guard lock(desk_->mutex);
    desk_->is_closed = true;
    is_idle = desk_->given == desk_->answered;
  }
  desk_->changed.notify_all();
  // A thread that waits for an answer ends with it, or with the process.
  is_idle ? thread_.join() : thread_.detach();
}

template <typename Call>
auto BoundedStore::ask(Call call) {
  using Answer = std::invoke_result_t<Call, c10d::Store&>;
  struct Outcome {
    std::optional<std::conditional_t<std::is_void_v<Answer>, bool, Answer>> answer;
    std::exception_ptr failure;
  };
  const auto outcome = std::make_shared<Outcome>();  // the thread may be later than this caller
  std::unique_lock lock(desk_->mutex);
  desk_->await(lock, getTimeout(), [this] { return desk_->given == desk_->answered; });
  const std::int64_t number = ++desk_->given;
  desk_->call = [outcome, call = std::move(call)](c10d::Store& store) {
    try {
      if constexpr (std::is_void_v<Answer>) {
        call(store);
      } else {
        outcome->answer = call(store);
      }
    } catch (...) {
      outcome->failure = std::current_exception();
    }
  };
  desk_->changed.notify_all();
  desk_->await(lock, getTimeout(), [this, number] { return desk_->answered >= number; });
  if (outcome->failure) std::rethrow_exception(outcome->failure);
  if constexpr (!std::is_void_v<Answer>) return *std::move(outcome->answer);
}

void BoundedStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  ask([key, value](c10d::Store& store) { store.set(key, value); });
}

std::vector<std::uint8_t> BoundedStore::compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                                   const std::vector<std::uint8_t>& desired) {
  return ask([=](c10d::Store& store) { return store.compareSet(key, expected, desired); });
}

std::vector<std::uint8_t> BoundedStore::get(const std::string& key) {
  wait({key});
  return ask([key](c10d::Store& store) { return store.get(key); });
}

std::int64_t BoundedStore::add(const std::string& key, std::int64_t value) {
  return ask([key, value](c10d::Store& store) { return store.add(key, value); });
}

bool BoundedStore::deleteKey(const std::string& key) {
  return ask([key](c10d::Store& store) { return store.deleteKey(key); });
}

bool BoundedStore::check(const std::vector<std::string>& keys) {
  return ask([keys](c10d::Store& store) { return store.check(keys); });
}

std::int64_t BoundedStore::getNumKeys() {
  return ask([](c10d::Store& store) { return store.getNumKeys(); });
}

void BoundedStore::wait(const std::vector<std::string>& keys) { wait(keys, getTimeout()); }

void BoundedStore::wait(const std::vector<std::string>& keys, const milliseconds& timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (milliseconds pause{1}; !check(keys); pause = std::min(2 * pause, milliseconds(50))) {
    const std::string lost = losses_ ? losses_() : "";
    if (!lost.empty() && check(keys)) return;
    if (!lost.empty()) throw std::runtime_error(lost);
    if (std::chrono::steady_clock::now() >= deadline) {
      throw std::runtime_error(fmt::format("timed out waiting for '{}' in the store", keys.front()));
    }
    std::this_thread::sleep_for(pause);
  }
}

#if TORCH_VERSION_MAJOR >= 2
c10::intrusive_ptr<c10d::Store> BoundedStore::clone() {
  return c10::make_intrusive<BoundedStore>(desk_->store->clone(), getTimeout(), losses_);
}
#endif

}  // namespace dssync
