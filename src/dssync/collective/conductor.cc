#include "dssync/collective/conductor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dssync {
namespace {

bool is_void(const Outcome& outcome) { return outcome.is_void(); }

}  // namespace

Conductor::Conductor(Explain explain, Timeline* timeline)
    : explain_(std::move(explain)),
      performer_([this](const Agenda::OperationId& id, c10d::Work& work) { watch(id, work); }, timeline),
      background_thread_([this] { work_in_background(); }) {}

Conductor::~Conductor() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    background_.notify_one();
  }
  background_thread_.join();
}

void Conductor::add(CutAverage average) {
  std::unique_lock lock(mutex_);
  if (crash_) std::rethrow_exception(crash_);
  has_given_up_ = false;
  book_.add(average.id);
  incoming_.push_back(std::move(average));
  // What ended is left to the background: the owner is busy with a backward pass, perhaps.
  if (!is_driven_) drive(lock, Drive::kIncoming);
  if (has_work()) background_.notify_one();
}

std::vector<Outcome> Conductor::wait(Engine::Until until, const std::vector<AverageId>* only) {
  std::unique_lock lock(mutex_);
  owner_waits_ = true;
  has_given_up_ = false;
  while (!crash_ && !book_.is_settled(until, only)) {
    if (has_work()) {
      drive(lock, Drive::kAll);
    } else {
      owner_.wait(lock);
    }
  }
  owner_waits_ = false;
  if (has_work()) background_.notify_one();
  if (crash_) std::rethrow_exception(crash_);
  std::vector<Outcome> outcomes = book_.tell();
  has_given_up_ = until == Engine::Until::kFirstVoid && std::any_of(outcomes.begin(), outcomes.end(), is_void);
  return outcomes;
}

std::int64_t Conductor::take_bytes_sent() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bytes_sent_, 0);
}

std::vector<StageUse> Conductor::take_stage_uses() {
  const std::lock_guard lock(mutex_);
  return std::exchange(stage_uses_, {});
}

// REQUIRES: mutex_ is held.
bool Conductor::has_work() const { return !is_driven_ && !(incoming_.empty() && ended_.empty()); }

// Starts and completes what there is. REQUIRES: `lock` holds mutex_, and nobody drives.
void Conductor::drive(std::unique_lock<std::mutex>& lock, Drive what) {
  is_driven_ = true;
  try {
    while (!incoming_.empty() || (what == Drive::kAll && !ended_.empty())) {
      std::deque<CutAverage> arrived = std::exchange(incoming_, {});
      std::deque<EndedOperation> ended;
      if (what == Drive::kAll) ended.swap(ended_);
      lock.unlock();
      for (CutAverage& average : arrived) performer_.admit(std::move(average));
      for (const EndedOperation& operation : ended) performer_.complete(operation.id, operation.end);
      performer_.start_ready();
      Progress progress = performer_.take_progress();
      lock.lock();
      take_in(std::move(progress));
    }
    is_driven_ = false;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    crash_ = std::current_exception();
    background_.notify_one();
  }
  owner_.notify_one();
}

// REQUIRES: mutex_ is held.
void Conductor::take_in(Progress progress) {
  for (const auto& [average, cause] : progress.voids) book_.set_void(average, cause);
  for (const AverageId average : progress.ended) book_.set_ended(average);
  bytes_sent_ += progress.bytes_sent;
  stage_uses_.insert(stage_uses_.end(), progress.stage_uses.begin(), progress.stage_uses.end());
  if (progress.breakages.empty()) return;
  has_failed_ = true;
  for (Breakage& breakage : progress.breakages) breakages_.push_back(std::move(breakage));
  background_.notify_one();
}

// Called by whoever drives, without the lock. The future outlives the conductor's interest in it, but not the
// conductor: it waits for all that is watched.
void Conductor::watch(const Agenda::OperationId& id, c10d::Work& work) {
  {
    const std::lock_guard lock(mutex_);
    ++watched_;
  }
  try {
    work.getFuture()->addCallback([this, id](auto&) { note_end(id); });
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --watched_;
    throw;
  }
}

void Conductor::note_end(const Agenda::OperationId& id) {
  const std::lock_guard lock(mutex_);
  --watched_;
  ended_.push_back({id, Clock::now()});
  (owner_waits_ && !crash_ ? owner_ : background_).notify_one();
}

void Conductor::work_in_background() {
  std::unique_lock lock(mutex_);
  bool is_left_cut = false;
  while (!crash_ && !(is_stopping_ && book_.all_ended() && breakages_.empty())) {
    if (!breakages_.empty()) {
      attend_to_breakage(lock);
    } else if (has_work() && !owner_waits_) {
      drive(lock, Drive::kAll);
    } else if (is_stopping_ && has_failed_ && !std::exchange(is_left_cut, true)) {
      cut_what_is_left(lock);
    } else {
      background_.wait(lock);
    }
  }
  if (crash_) end_after_crash(lock);
}

// The explanation comes first: others who notice the cut find it published. REQUIRES: `lock` holds mutex_.
void Conductor::attend_to_breakage(std::unique_lock<std::mutex>& lock) {
  const Breakage breakage = std::move(breakages_.front());
  breakages_.pop_front();
  const bool is_wanted = !is_stopping_ && !has_given_up_;
  lock.unlock();
  std::exception_ptr error;
  if (breakage.failure) error = is_wanted ? error_of(*breakage.failure) : breakage.failure->thrown;
  cut_all(breakage.channels);
  lock.lock();
  if (breakage.failure) book_.explain(breakage.failure->cause, error);
  owner_.notify_one();
}

std::exception_ptr Conductor::error_of(const Failure& failure) const {
  if (!failure.symptom) return failure.thrown;
  try {
    const std::string doing = fmt::format("averaging with ranks {}", fmt::join(failure.members, ", "));
    return explain_(doing, failure.members, *failure.symptom);
  } catch (...) {
    return std::current_exception();
  }
}

// REQUIRES: `lock` holds mutex_, and the owner has gone.
void Conductor::cut_what_is_left(std::unique_lock<std::mutex>& lock) {
  const std::vector<Channel> channels = performer_.channels();
  lock.unlock();
  cut_all(channels);
  lock.lock();
}

// Nobody drives any more. What c10d still reads and writes lives as long as the performer.
void Conductor::end_after_crash(std::unique_lock<std::mutex>& lock) {
  cut_what_is_left(lock);
  while (watched_ > 0) background_.wait(lock);
}

}  // namespace dssync
