// The thread and the locks of an engine: decides who drives the averages, keeps their outcomes, and explains failures.
// Owned by the engine and called by the engine's owner alone; c10d's threads tell it what has ended.
//
// Whoever has found work to do and nobody else at it drives: the owner while it hands in averages and waits, so that
// these cost no hand-over to another thread; otherwise the background thread. The background thread alone explains
// failures, which takes seconds, and then cuts the channels that are broken; meanwhile an owner that waits drives on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "dssync/collective/agenda.h"
#include "dssync/collective/engine.h"
#include "dssync/collective/explain.h"
#include "dssync/collective/outcome_book.h"
#include "dssync/collective/performer.h"

namespace dssync {

class Conductor {
 public:
  Conductor(Explain explain, Timeline* timeline);

  // Waits until nothing is under way; after a failure it cuts what is.
  ~Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;

  // As Engine's. Throw what broke the bookkeeping itself, if something did; nothing works any more then.
  void add(CutAverage average);
  // `only`: null for all averages.
  std::vector<Outcome> wait(Engine::Until until, const std::vector<AverageId>* only);
  std::int64_t take_bytes_sent();
  std::vector<StageUse> take_stage_uses();

 private:
  struct EndedOperation {
    Agenda::OperationId id;
    Clock::time_point end;
  };

  enum class Drive { kIncoming, kAll };

  bool has_work() const;
  void drive(std::unique_lock<std::mutex>& lock, Drive what);
  void take_in(Progress progress);
  void watch(const Agenda::OperationId& id, c10d::Work& work);
  void note_end(const Agenda::OperationId& id);
  void work_in_background();
  void attend_to_breakage(std::unique_lock<std::mutex>& lock);
  std::exception_ptr error_of(const Failure& failure) const;
  void cut_what_is_left(std::unique_lock<std::mutex>& lock);
  void end_after_crash(std::unique_lock<std::mutex>& lock);

  const Explain explain_;
  Performer performer_;  // of whoever drives

  std::mutex mutex_;  // guards all that follows
  std::condition_variable background_;
  std::condition_variable owner_;
  std::deque<CutAverage> incoming_;
  std::deque<EndedOperation> ended_;
  std::deque<Breakage> breakages_;
  OutcomeBook book_;
  std::int64_t bytes_sent_ = 0;
  std::vector<StageUse> stage_uses_;
  std::size_t watched_ = 0;   // works that have not ended
  std::exception_ptr crash_;  // of the bookkeeping: nobody drives any more
  bool is_driven_ = false;
  bool owner_waits_ = false;
  bool is_stopping_ = false;
  bool has_given_up_ = false;  // the owner: it knows of a void average, and waits for no other
  bool has_failed_ = false;    // some channel, ever

  std::thread background_thread_;  // last: it uses all of the above
};

}  // namespace dssync
