#include "dssync/testbed/iproute.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/text.h"
#include "dssync/testbed/error.h"

namespace dssync {
namespace {

constexpr int kCannotEnter = 126;
constexpr int kCannotStart = 127;

// A file in memory: unlike a pipe it holds any amount while nobody reads.
Descriptor memory_file(const char* name) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC));
  if (file.get() < 0) throw TestbedError(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  return file;
}

std::string contents(int file) {
  std::string text;
  std::array<char, 65536> chunk{};
  ssize_t size = 0;
  while ((size = pread(file, chunk.data(), chunk.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(size));
  }
  return text;
}

void fill(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(file, text.data(), text.size());
    if (size < 0) throw TestbedError(fmt::format("cannot write to a file in memory: {}", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  lseek(file, 0, SEEK_SET);
}

struct Outcome {
  int status = 0;
  std::string output;
  std::string errors;
};

[[noreturn]] void become_tool(const char* program, char* const* arguments, const std::array<int, 3>& streams,
                              const Space& where) {
  for (int i = 0; i < 3; ++i) dup2(streams[static_cast<std::size_t>(i)], i);
  if (!try_enter(where)) _exit(kCannotEnter);
  sigset_t none{};
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  execv(program, arguments);
  _exit(kCannotStart);
}

Outcome run(std::vector<std::string> command, std::string_view input, const Space& where) {
  const std::string program = find_program(command.front());
  if (program.empty()) throw TestbedError(fmt::format("'{}' is missing: install iproute2", command.front()));
  const Descriptor in = memory_file("dssync-input");
  const Descriptor out = memory_file("dssync-output");
  const Descriptor errors = memory_file("dssync-errors");
  fill(in.get(), input);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::array<int, 3> streams{in.get(), out.get(), errors.get()};
  const pid_t child = fork();
  if (child == 0) become_tool(program.c_str(), arguments.data(), streams, where);
  if (child < 0) throw TestbedError(fmt::format("cannot start {}: {}", command.front(), std::strerror(errno)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = contents(out.get()),
          .errors = contents(errors.get())};
}

// What the tool said, on one line; what we know where it said nothing.
std::string words_of(const Outcome& outcome) {
  std::string said;
  std::istringstream lines(outcome.errors);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Command failed")) continue;
    const std::string_view text = trimmed(line);
    if (!text.empty()) said += (said.empty() ? "" : "; ") + std::string(text);
  }
  if (!said.empty()) return said;
  if (outcome.status == kCannotEnter) return "cannot enter its network namespace";
  return fmt::format("ended with status {}", outcome.status);
}

// The line that "Command failed -:7" names.
std::string failed_line(const Outcome& outcome, const std::string& text) {
  const std::size_t place = outcome.errors.rfind("Command failed");
  const std::size_t colon = place == std::string::npos ? place : outcome.errors.find(':', place);
  int number = 0;
  if (colon != std::string::npos) {
    std::from_chars(outcome.errors.data() + colon + 1, outcome.errors.data() + outcome.errors.size(), number);
  }
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(lines, line);
  return number > 0 ? line : "-batch -";
}

}  // namespace

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin:/sbin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty() || folder.front() != '/') continue;
    std::string file = fmt::format("{}/{}", folder, name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string run_tool(const std::vector<std::string>& command, const Space& where) {
  Outcome outcome = run(command, "", where);
  if (outcome.status == 0) return std::move(outcome.output);
  throw TestbedError(fmt::format("{} ({})", words_of(outcome), fmt::join(command, " ")));
}

std::string run_batch(const std::string& tool, const std::string& text, const Space& where) {
  if (text.empty()) return "";
  Outcome outcome = run({tool, "-batch", "-"}, text, where);
  if (outcome.status == 0) return std::move(outcome.output);
  throw TestbedError(fmt::format("{} ({} {})", words_of(outcome), tool, failed_line(outcome, text)));
}

}  // namespace dssync
