#include "dssync/comm/losses/loss_listeners.h"

#include <utility>

namespace dssync {

int LossListeners::add(LossListener listener) {
  const std::lock_guard lock(mutex_);
  listeners_[++last_] = {std::move(listener), 0};
  return last_;
}

void LossListeners::remove(int number) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(number);
}

void LossListeners::tell(const LossRecord& record) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, entry] : listeners_) {
    for (const Loss& loss : record.after(entry.heard)) {
      ++entry.heard;
      try {
        entry.listener(loss);
      } catch (...) {
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }
}

void LossListeners::rethrow() {
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

LossSubscription::LossSubscription(std::shared_ptr<LossListeners> listeners, LossListener listener)
    : listeners_(std::move(listeners)), number_(listeners_->add(std::move(listener))) {}

LossSubscription::~LossSubscription() {
  if (listeners_) listeners_->remove(number_);
}

LossSubscription::LossSubscription(LossSubscription&& other) noexcept
    : listeners_(std::exchange(other.listeners_, nullptr)), number_(other.number_) {}

LossSubscription& LossSubscription::operator=(LossSubscription&& other) noexcept {
  std::swap(listeners_, other.listeners_);
  std::swap(number_, other.number_);
  return *this;
}

}  // namespace dssync
