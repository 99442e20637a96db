#include "dssync/launch/signal_pipe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

std::atomic<int> handler_pipe{-1};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

extern "C" void write_signal(int signal) {
  const int kept = errno;
  const auto byte = static_cast<unsigned char>(signal);
  // A full pipe wakes its reader just as well, and every reader looks at all that may have changed.
  [[maybe_unused]] const ssize_t written = write(handler_pipe.load(), &byte, 1);
  errno = kept;
}

}  // namespace

SignalPipe::SignalPipe(const std::vector<int>& signals) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(fmt::format("cannot make a pipe for signals: {}", std::strerror(errno)));
  }
  read_end_ = ends[0];
  write_end_ = ends[1];
  handler_pipe = write_end_;
  for (const int signal : signals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN && signal != SIGCHLD) continue;
    struct sigaction ours {};
    ours.sa_handler = write_signal;
    ours.sa_flags = SA_RESTART;
    sigemptyset(&ours.sa_mask);
    sigaction(signal, &ours, nullptr);
    before_.emplace_back(signal, before);
  }
}

void SignalPipe::restore() {
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
  before_.clear();
  handler_pipe = -1;
  if (read_end_ >= 0) close(read_end_);
  if (write_end_ >= 0) close(write_end_);
  read_end_ = -1;
  write_end_ = -1;
}

SignalPipe::~SignalPipe() { restore(); }

void SignalPipe::abandon() { restore(); }

void SignalPipe::wait(const Deadline& deadline, int other) const {
  int milliseconds = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
    milliseconds = static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000));
  }
  std::array<pollfd, 2> watched{pollfd{read_end_, POLLIN, 0}, pollfd{other, POLLIN, 0}};  // -1 is not watched
  if (poll(watched.data(), watched.size(), milliseconds) < 0 && errno != EINTR) {
    throw Error(fmt::format("cannot wait for signals: {}", std::strerror(errno)));
  }
}

std::optional<int> SignalPipe::next() {
  unsigned char byte = 0;
  if (read(read_end_, &byte, 1) != 1) return std::nullopt;
  return byte;
}

}  // namespace dssync
