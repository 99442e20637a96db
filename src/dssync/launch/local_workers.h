// Workers on this machine, forked from this process and watched by it until the last one has ended.
//
// They are forked without exec, so that a large program is loaded once. Therefore: when LocalWorkers is made, this
// process must have no threads of its own and must not have used libtorch. Afterwards the parent may.
//
// No worker outlives its launcher, however that ends: the kernel kills them with it. (With the thread that made
// LocalWorkers, to be exact: make it in the main thread.)
//
// A Ctrl-C in the terminal reaches the workers as well. They ignore it, and SIGHUP, and obey the SIGTERM that the
// launcher sends them. Not thread-safe. At most one LocalWorkers or StopSignal exists at a time in a process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace dssync {

// A worker's end of the channel from its launcher. For one thread at a time.
class LauncherChannel {
 public:
  explicit LauncherChannel(int socket) : socket_(socket) {}

  // Waits for the next message that the launcher broadcasts. Throws Error where the launcher has ended.
  std::string receive();
  // The next message, if there is one already.
  std::optional<std::string> try_receive();

 private:
  int socket_;
};

struct LocalWorkersOptions {
  // After a worker is lost, the others may so long find out and end by themselves; then they get SIGTERM.
  std::chrono::milliseconds grace{5000};
  // Those that SIGTERM did not end after this time get SIGKILL.
  std::chrono::milliseconds patience{3000};
};

// A worker that ended badly of its own accord.
struct LostWorker {
  int rank = 0;
  int status = 0;           // that it ended with; -1 where a signal killed it
  std::string description;  // "was killed by signal 9 (Killed)", "ended with status 1"
};

// How it went.
struct Supervision {
  int interrupted_by = 0;         // the signal that ended it early; 0: none
  std::vector<LostWorker> lost;   // the first one is most likely the cause: those given up, then as they were noticed
  std::vector<int> unresponsive;  // ranks that had to be killed

  bool went_well() const { return interrupted_by == 0 && lost.empty(); }
};

class LocalWorkers {
 public:
  // What a worker does; it ends with the returned status. One that throws ends with status 1 and a line on stderr.
  using Main = std::function<int(int rank, LauncherChannel& launcher)>;
  using OnLoss = std::function<void(const LostWorker& lost)>;

  // Forks `count` workers. Throws Error, with none left, where the system has no room for them.
  LocalWorkers(int count, const Main& main, const LocalWorkersOptions& options = {});
  // Kills the workers that are still there.
  ~LocalWorkers();
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // Sends a message of 1 byte to 64 kB to every worker that is still there.
  void broadcast(const std::string& message);

  // Returns when all workers have ended. `on_loss`, which must not throw, hears of every worker that dies by a signal
  // or ends with a status other than 0, unless it was told to end. On SIGINT, SIGTERM or SIGHUP to this process all
  // workers get SIGTERM, and on another SIGINT, SIGKILL.
  Supervision supervise(const OnLoss& on_loss = nullptr);

  // Kills a worker that the others have given up: it is lost, as `description` says. For on_loss. Does nothing to one
  // that has ended.
  void give_up(int rank, const std::string& description);

  int size() const;
  pid_t pid(int rank) const;

 private:
  class Family;
  std::unique_ptr<Family> family_;
};

}  // namespace dssync
