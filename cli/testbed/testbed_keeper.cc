#include "testbed/testbed_keeper.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/testbed/testbed.h"

namespace dssync::cli {
namespace {

// How the first byte of the keeper's message begins.
constexpr char kBuilt = 'b';
constexpr char kBadInput = 'i';
constexpr char kFailed = 'f';

void tell(int pipe, char kind, const std::string& text) {
  const std::string message = kind + text;
  if (::write(pipe, message.data(), message.size()) < 0) _exit(1);
  close(pipe);
}

// Away from the terminal, the folder and the streams of whoever started it.
void detach(int pipe) {
  prctl(PR_SET_NAME, "dssync-testbed");
  const int nowhere = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(nowhere, stream);
  close_range(3, static_cast<unsigned>(pipe) - 1, 0);
  close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
}

int keep(const Topology& topology, const std::string& name, const std::string& source, int pipe) {
  sigset_t ends{};
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  try {
    const Testbed testbed(topology, name, source);
    if (chdir("/") != 0) return 1;
    tell(pipe, kBuilt, testbed.name());
    int signal = 0;
    sigwait(&ends, &signal);
    return 0;
  } catch (const InputError& error) {
    tell(pipe, kBadInput, error.what());
  } catch (const std::exception& error) {
    tell(pipe, kFailed, error.what());
  }
  return 1;
}

std::string read_message(int pipe) {
  std::string message;
  std::array<char, 4096> chunk{};
  ssize_t size = 0;
  while ((size = read(pipe, chunk.data(), chunk.size())) > 0 || (size < 0 && errno == EINTR)) {
    if (size > 0) message.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return message;
}

}  // namespace

std::string start_keeper(const Topology& topology, const std::string& name, const std::string& source) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);  // no leader of a session, so that it never gets a terminal; and nobody's child
    close(ends[0]);
    detach(ends[1]);
    _exit(keep(topology, name, source, ends[1]));
  }
  close(ends[1]);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  const std::string message = read_message(ends[0]);
  close(ends[0]);
  if (message.empty()) throw Error("the process that was to hold the testbed was killed");
  std::string text = message.substr(1);
  if (message.front() == kBadInput) throw InputError(text);
  if (message.front() == kFailed) throw Error(text);
  return text;
}

}  // namespace dssync::cli
