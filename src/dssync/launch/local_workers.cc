// Forking, watching, and ending: the stages of an end are in Family::escalate.
#include "dssync/launch/local_workers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/launch/signal_pipe.h"

namespace dssync {
namespace {

using Clock = std::chrono::steady_clock;

struct Worker {
  pid_t pid = -1;
  int channel = -1;  // the launcher's end
  bool is_alive = false;
  std::string given_up{};  // why; empty: it is not
};

std::string describe_end(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  const char* name = sigdescr_np(WTERMSIG(status));
  return fmt::format("was killed by signal {} ({})", WTERMSIG(status), name == nullptr ? "unknown" : name);
}

// Holds back all signals while it lives: a new child must not get one before it has its own dispositions.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// In the child, before anything else.
void become_worker(int rank, pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);  // it ended before the line above
  prctl(PR_SET_NAME, fmt::format("dssync-rank-{}", rank).c_str());
  for (const int signal : {SIGINT, SIGHUP}) std::signal(signal, SIG_IGN);
  for (const int signal : {SIGTERM, SIGCHLD}) std::signal(signal, SIG_DFL);
}

int run_worker(const LocalWorkers::Main& main, int rank, int channel) {
  try {
    LauncherChannel launcher(channel);
    return main(rank, launcher);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
  } catch (...) {
    fmt::print(stderr, "rank {}: unknown exception\n", rank);
  }
  return 1;
}

}  // namespace

std::string LauncherChannel::receive() {
  pollfd watched{socket_, POLLIN, 0};
  while (poll(&watched, 1, -1) < 0 && errno == EINTR) continue;
  std::optional<std::string> message = try_receive();
  if (!message) throw Error("the launcher has ended");
  return *std::move(message);
}

std::optional<std::string> LauncherChannel::try_receive() {
  const ssize_t size = recv(socket_, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (size <= 0) return std::nullopt;
  std::string message(static_cast<std::size_t>(size), '\0');
  if (recv(socket_, message.data(), message.size(), 0) != size) return std::nullopt;
  return message;
}

class LocalWorkers::Family {
 public:
  Family(int count, const Main& main, const LocalWorkersOptions& options) : options_(options) {
    std::fflush(nullptr);  // or every child would write what is buffered once more
    for (int rank = 0; rank < count; ++rank) {
      if (start(rank, main)) continue;
      const std::string cause = std::strerror(errno);
      end_all();
      throw Error(fmt::format("cannot start worker {} of {}: {}", rank + 1, count, cause));
    }
  }

  ~Family() { end_all(); }

  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  const std::vector<Worker>& workers() const { return workers_; }

  void broadcast(const std::string& message) {
    for (const Worker& worker : workers_) {
      if (!worker.is_alive) continue;
      const ssize_t sent = send(worker.channel, message.data(), message.size(), MSG_NOSIGNAL);
      // A worker that has just died is noticed by supervise.
      if (sent < 0 && errno != EPIPE && errno != ECONNRESET) {
        throw Error(fmt::format("cannot send to a worker: {}", std::strerror(errno)));
      }
    }
  }

  void give_up(std::size_t rank, const std::string& description) {
    Worker& worker = workers_.at(rank);
    if (!worker.is_alive || !worker.given_up.empty()) return;
    worker.given_up = description;
    kill(worker.pid, SIGKILL);
  }

  Supervision supervise(const OnLoss& on_loss) {
    while (living() > 0) {
      signals_.wait(deadline_);
      while (const std::optional<int> signal = signals_.next()) {
        if (*signal != SIGCHLD) interrupt(*signal);
      }
      reap(on_loss);
      if (deadline_ && Clock::now() >= *deadline_) escalate();
    }
    return result_;
  }

 private:
  // Each stage begins with what its name says.
  enum class Stage { kRunning, kLossNoticed, kTerminated, kKilled };

  // False, with errno, where the system refused.
  bool start(int rank, const Main& main) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
    const pid_t launcher = getpid();
    std::optional<SignalsBlocked> blocked(std::in_place);
    const pid_t pid = fork();
    if (pid == 0) {
      signals_.abandon();
      become_worker(rank, launcher);
      for (const Worker& other : workers_) close(other.channel);
      close(ends[0]);
      blocked.reset();
      const int status = run_worker(main, rank, ends[1]);
      std::fflush(nullptr);
      _exit(status);
    }
    const int cause = errno;
    close(ends[1]);
    if (pid < 0) {
      close(ends[0]);
      errno = cause;
      return false;
    }
    workers_.push_back({.pid = pid, .channel = ends[0], .is_alive = true});
    return true;
  }

  std::size_t living() const {
    return static_cast<std::size_t>(
        std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.is_alive; }));
  }

  void signal_all(int signal) {
    for (const Worker& worker : workers_) {
      if (worker.is_alive) kill(worker.pid, signal);  // not reaped yet, so the number is still its own
    }
  }

  void enter(Stage stage) {
    stage_ = stage;
    deadline_.reset();
    if (stage == Stage::kLossNoticed) deadline_ = Clock::now() + options_.grace;
    if (stage == Stage::kTerminated) {
      signal_all(SIGTERM);
      deadline_ = Clock::now() + options_.patience;
    }
    if (stage == Stage::kKilled) {
      for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (workers_[i].is_alive) result_.unresponsive.push_back(static_cast<int>(i));
      }
      signal_all(SIGKILL);
    }
  }

  void escalate() { enter(stage_ == Stage::kLossNoticed ? Stage::kTerminated : Stage::kKilled); }

  void interrupt(int signal) {
    const bool is_again = result_.interrupted_by != 0;
    if (!is_again) result_.interrupted_by = signal;
    if (stage_ < Stage::kTerminated) {
      enter(Stage::kTerminated);
    } else if (is_again && signal == SIGINT && stage_ == Stage::kTerminated) {
      enter(Stage::kKilled);
    }
  }

  void reap(const OnLoss& on_loss) {
    std::vector<LostWorker> killed;
    std::vector<LostWorker> failed;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      int status = 0;
      if (!workers_[i].is_alive || waitpid(workers_[i].pid, &status, WNOHANG) == 0) continue;
      workers_[i].is_alive = false;
      if (!workers_[i].given_up.empty()) {
        result_.lost.insert(result_.lost.begin(), {static_cast<int>(i), -1, workers_[i].given_up});
      } else if (status != 0) {
        const int number = WIFSIGNALED(status) ? -1 : WEXITSTATUS(status);
        (number < 0 ? killed : failed).push_back({static_cast<int>(i), number, describe_end(status)});
      }
    }
    if (stage_ >= Stage::kTerminated) return;  // they did as they were told
    // Of those that ended at the same time, one that was killed is rather the cause than one that gave up.
    killed.insert(killed.end(), failed.begin(), failed.end());
    for (LostWorker& lost : killed) {
      if (stage_ == Stage::kRunning) enter(Stage::kLossNoticed);
      result_.lost.push_back(lost);
      if (on_loss) on_loss(lost);
    }
  }

  void end_all() {
    signal_all(SIGKILL);
    for (Worker& worker : workers_) {
      if (worker.is_alive) {
        while (waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) continue;
      }
      worker.is_alive = false;
      if (worker.channel >= 0) close(worker.channel);
      worker.channel = -1;
    }
  }

  const LocalWorkersOptions options_;
  SignalPipe signals_{{SIGCHLD, SIGINT, SIGTERM, SIGHUP}};
  std::vector<Worker> workers_;
  Stage stage_ = Stage::kRunning;
  SignalPipe::Deadline deadline_;
  Supervision result_;
};

LocalWorkers::LocalWorkers(int count, const Main& main, const LocalWorkersOptions& options)
    : family_(std::make_unique<Family>(count, main, options)) {}

LocalWorkers::~LocalWorkers() = default;

void LocalWorkers::broadcast(const std::string& message) { family_->broadcast(message); }

Supervision LocalWorkers::supervise(const OnLoss& on_loss) { return family_->supervise(on_loss); }

void LocalWorkers::give_up(int rank, const std::string& description) {
  family_->give_up(static_cast<std::size_t>(rank), description);
}

int LocalWorkers::size() const { return static_cast<int>(family_->workers().size()); }

pid_t LocalWorkers::pid(int rank) const { return family_->workers().at(static_cast<std::size_t>(rank)).pid; }

}  // namespace dssync
