// A c10d store whose calls end, whatever happens to the process that serves it.
//
// A store that has stopped leaves c10d's own calls waiting, with PyTorch 2 without limit. Here a thread of its own
// makes them; where it gets no answer in time, the caller goes on with a StoreSilence, and the thread is left to its
// wait. Waiting for a key asks again and again, so that a lost worker is heard of and other threads get their turn.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dssync/comm/c10d.h"

namespace dssync {

// The store has not answered in time. It may still.
class StoreSilence : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class BoundedStore final : public c10d::Store {
 public:
  // What is known of lost workers, such as "rank 3 gives no sign of life"; empty: nothing. Thread-safe.
  using Losses = std::function<std::string()>;

  // `timeout` is for every single answer, and for keys that get() and wait() wait for. While `losses` says something,
  // nobody is waited for. Time in which this process stood still does not count.
  BoundedStore(dssync::Store store, std::chrono::milliseconds timeout, Losses losses = nullptr);
  ~BoundedStore() override;

  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  using c10d::Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
#if TORCH_VERSION_MAJOR >= 2
  c10::intrusive_ptr<c10d::Store> clone() override;
#endif

 private:
  struct Desk;

  template <typename Call>
  auto ask(Call call);

  const std::shared_ptr<Desk> desk_;  // shared with the thread, which may outlive this
  const Losses losses_;
  std::thread thread_;
};

}  // namespace dssync
