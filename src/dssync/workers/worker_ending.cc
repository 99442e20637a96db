#include "dssync/workers/worker_ending.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "dssync/workers/store_server.h"

namespace dssync {

void WorkerEnding::set_on_end(OnEnd on_end) {
  const std::lock_guard lock(mutex_);
  on_end_ = std::move(on_end);
}

void WorkerEnding::set_world(World* world) {
  const std::lock_guard lock(mutex_);
  world_ = world;
}

void WorkerEnding::call_on_end(Kind kind, const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (!on_end_) return;
  try {
    on_end_(kind, cause);
  } catch (const std::exception& error) {
    complain_(error.what(), ExitStatus::kFailed);
  }
}

// On a thread of its own, because a store that does not answer must not keep this worker from ending.
void WorkerEnding::tell_others(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (world_ == nullptr) return;
  std::promise<void> told;
  const std::future<void> done = told.get_future();
  std::thread([world = world_, cause, told = std::move(told)]() mutable {
    world->report_failure(cause);
    depart(*world);
    told.set_value();
  }).detach();
  done.wait_for(std::chrono::seconds(1));
}

void WorkerEnding::stop(int signal) {
  const std::string interruption = fmt::format("interrupted by signal {} ({})", signal, sigdescr_np(signal));
  // A launcher that ends its workers because one of them was lost has said so.
  const std::optional<std::string> loss = launcher_ == nullptr ? std::nullopt : launcher_->try_receive();
  call_on_end(loss ? Kind::kFailed : Kind::kInterrupted, loss.value_or(interruption));
  if (loss) {
    complain_("ended by the launcher: " + *loss, ExitStatus::kFailed);
  } else if (launcher_ == nullptr) {
    complain_(interruption, ExitStatus::kFailed);
    tell_others(interruption);
  }
  std::fflush(nullptr);
  _exit(ExitStatus::kFailed);
}

}  // namespace dssync
