// Starts all workers of a run on this machine, serves the store at which they meet, and tells each of those who are
// left when one is lost. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dssync/launch/assignment.h"
#include "dssync/launch/local_workers.h"

namespace dssync {

struct LaunchOptions {
  int workers = 1;
  std::uint16_t port = 0;  // of the store; 0: any free one
  // Called in each worker before anything else: enters the host in which it is to run, such as one of a testbed, and
  // returns the address at which the store is reached from there. Null: all workers are on loopback.
  std::function<std::string(int rank)> enter_host{};
  LocalWorkersOptions ending{};  // how long those who are left may take to end after a loss
};

// What a worker does, usually run_worker(); returns its exit status.
using WorkerMain = std::function<int(const Assignment& assignment, LauncherChannel& launcher)>;

// Returns when all workers have ended, and how it went. Forks them before the store's threads start, so the rules of
// LocalWorkers hold: call it in the main thread, before this process has threads or has used libtorch. Throws Error
// where the workers cannot be started or the port is taken.
Supervision launch_workers(const LaunchOptions& options, const WorkerMain& main);

// "rank 3 was killed by signal 9 (Killed)"
std::string loss_text(const LostWorker& lost);

}  // namespace dssync
