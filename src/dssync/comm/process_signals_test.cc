#include "dssync/comm/process_signals.h"

#include <cerrno>
#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

namespace dssync {
namespace {

void handle(int /*signal*/) {}

TEST(ProcessSignalsTest, ABrokenPipeIsAnErrorOfTheCall) {
  std::signal(SIGPIPE, SIG_DFL);
  ignore_broken_pipes();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(ProcessSignalsTest, AHandlerStays) {
  std::signal(SIGPIPE, handle);
  ignore_broken_pipes();
  EXPECT_EQ(std::signal(SIGPIPE, SIG_IGN), &handle);
}

}  // namespace
}  // namespace dssync
