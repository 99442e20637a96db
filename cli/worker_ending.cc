#include "worker_ending.h"

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

#include "store_server.h"
#include "terminal/live_line.h"
#include "tool.h"

namespace dssync::cli {

int WorkerEnding::complain(const std::string& message, int status) const {
  const std::string start = fmt::format("rank {}: ", rank_);  // may stand in the message already
  clear_standard_error_line();
  return cli::complain(fmt::format("{}: rank {}", speaker_, rank_),
                       message.starts_with(start) ? message.substr(start.size()) : message, status);
}

void WorkerEnding::set_log(std::shared_ptr<RunLog> log) {
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
}

void WorkerEnding::set_world(World* world) {
  const std::lock_guard lock(mutex_);
  world_ = world;
}

void WorkerEnding::end_log(const std::string& cause, bool is_failure) {
  const std::lock_guard lock(mutex_);
  if (!log_) return;
  try {
    is_failure ? log_->failed(cause) : log_->interrupted(cause);
  } catch (const std::exception& error) {
    complain(error.what(), kFailed);
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
  end_log(loss.value_or(interruption), loss.has_value());
  if (loss) {
    complain("ended by the launcher: " + *loss, kFailed);
  } else if (launcher_ == nullptr) {
    complain(interruption, kFailed);
    tell_others(interruption);
  }
  std::fflush(nullptr);
  _exit(kFailed);
}

}  // namespace dssync::cli
