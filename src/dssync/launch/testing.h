// For tests: processes and pipes that are watched with a deadline, and never left behind. Not installed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace dssync::testing {

// Whoever waits longer has found an error.
inline constexpr std::chrono::seconds kTestPatience{20};

// A pipe that is made before a fork, for children to tell the test something.
class TextPipe {
 public:
  TextPipe();
  ~TextPipe();
  TextPipe(const TextPipe&) = delete;
  TextPipe& operator=(const TextPipe&) = delete;

  // Usable in a signal handler.
  void write(const char* text) const;
  // The next line without its end; what came so far where there is none in time.
  std::string read_line();
  // All that comes until every writer has ended.
  std::string read_all();
  void close_write_end();

 private:
  bool read_more();

  int read_end_ = -1;
  int write_end_ = -1;
  std::string buffer_;
};

// Runs a function in a forked process of its own process group, which it leads.
class ForkedProcess {
 public:
  explicit ForkedProcess(const std::function<int()>& main);
  ~ForkedProcess();  // kills it
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  pid_t pid() const { return pid_; }
  // As waitpid gives it; nothing where it has not ended in time.
  std::optional<int> wait();

 private:
  pid_t pid_ = -1;
  bool is_reaped_ = false;
};

// Orphans become children of this process, so that it can wait for them, too.
void adopt_orphans();
// Whether this process has no children left, within kTestPatience; reaps them.
bool all_children_end();

}  // namespace dssync::testing
