#include "dssync/launch/testing.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "dssync/base/error.h"

namespace dssync::testing {
namespace {

bool is_readable_in_time(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return poll(&watched, 1, static_cast<int>(std::chrono::milliseconds(kTestPatience).count())) == 1;
}

}  // namespace

TextPipe::TextPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(std::strerror(errno));
  read_end_ = ends[0];
  write_end_ = ends[1];
}

TextPipe::~TextPipe() {
  close(read_end_);
  close_write_end();
}

void TextPipe::close_write_end() {
  if (write_end_ >= 0) close(write_end_);
  write_end_ = -1;
}

void TextPipe::write(const char* text) const {
  [[maybe_unused]] const ssize_t written = ::write(write_end_, text, std::strlen(text));
}

bool TextPipe::read_more() {
  std::array<char, 256> chunk{};
  if (!is_readable_in_time(read_end_)) return false;
  const ssize_t size = read(read_end_, chunk.data(), chunk.size());
  if (size > 0) buffer_.append(chunk.data(), static_cast<std::size_t>(size));
  return size > 0;
}

std::string TextPipe::read_line() {
  while (buffer_.find('\n') == std::string::npos && read_more()) continue;
  const std::size_t end = buffer_.find('\n');
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

std::string TextPipe::read_all() {
  while (read_more()) continue;
  return buffer_;
}

ForkedProcess::ForkedProcess(const std::function<int()>& main) {
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw Error(std::strerror(errno));
  if (pid_ == 0) {
    setpgid(0, 0);
    _exit(main());
  }
  setpgid(pid_, pid_);
}

ForkedProcess::~ForkedProcess() {
  if (is_reaped_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ForkedProcess::wait() {
  const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  const bool ended = is_readable_in_time(descriptor);
  close(descriptor);
  if (!ended) return std::nullopt;
  int status = 0;
  waitpid(pid_, &status, 0);
  is_reaped_ = true;
  return status;
}

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool all_children_end() {
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno == ECHILD) return true;
    // Orphans arrive at no known moment, so there is nothing to wait on.
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace dssync::testing
