// Who wants to hear of losses. Thread-safe.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "dssync/comm/losses/loss_record.h"

namespace dssync {

// Called once for every lost worker, this one included, and where the store is lost; also for what was known before. In
// the thread of the watch: it must not wait for long, nor subscribe or unsubscribe. What it throws comes out of the
// next call of the World that compares, meets or connects.
using LossListener = std::function<void(const Loss& loss)>;

class LossListeners {
 public:
  int add(LossListener listener);
  // Waits for a call that is under way.
  void remove(int number);
  // Calls everybody for those losses of the record that it has not heard of.
  void tell(const LossRecord& record);
  // Throws the first exception of a listener since the last call, if there is one.
  void rethrow();

 private:
  struct Entry {
    LossListener listener;
    std::size_t heard = 0;
  };

  std::mutex mutex_;  // held while listeners are called
  std::map<int, Entry> listeners_;
  std::exception_ptr failure_;
  int last_ = 0;
};

// While it exists, the listener is called. Its end waits for a call that is under way.
class LossSubscription {
 public:
  LossSubscription() = default;
  LossSubscription(std::shared_ptr<LossListeners> listeners, LossListener listener);
  ~LossSubscription();
  LossSubscription(LossSubscription&& other) noexcept;
  LossSubscription& operator=(LossSubscription&& other) noexcept;

 private:
  std::shared_ptr<LossListeners> listeners_;
  int number_ = 0;
};

}  // namespace dssync
