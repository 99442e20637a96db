// A worker that is told to stop.
#include "dssync/launch/stop_signal.h"

#include <atomic>
#include <csignal>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "dssync/launch/testing.h"

namespace dssync {
namespace {

using testing::ForkedProcess;
using testing::kTestPatience;
using testing::TextPipe;

TEST(StopSignalTest, TheHandlerRunsOnAnotherThread) {
  std::promise<std::pair<int, std::thread::id>> heard;
  const StopSignal stop({SIGTERM, SIGINT}, [&](int signal) { heard.set_value({signal, std::this_thread::get_id()}); });
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  std::future<std::pair<int, std::thread::id>> result = heard.get_future();
  ASSERT_EQ(result.wait_for(kTestPatience), std::future_status::ready);
  const auto [signal, thread] = result.get();
  EXPECT_EQ(signal, SIGINT);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(StopSignalTest, TheHandlerRunsOnce) {
  std::promise<void> heard;  // throws if set twice
  const StopSignal stop({SIGTERM}, [&](int) { heard.set_value(); });
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  ASSERT_EQ(heard.get_future().wait_for(kTestPatience), std::future_status::ready);
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
}

TEST(StopSignalTest, EndsQuietlyWithoutASignal) {
  {
    const StopSignal stop({SIGTERM}, [](int) { ADD_FAILURE() << "no signal was sent"; });
  }
  {
    const StopSignal again({SIGTERM}, [](int) { ADD_FAILURE() << "no signal was sent"; });
  }
}

TEST(StopSignalTest, TheHandlerMayEndTheProcessWhileItsMainThreadIsBusy) {
  TextPipe said;
  ForkedProcess worker([&] {
    const StopSignal stop({SIGTERM}, [&](int) {
      said.write("stopping\n");
      _exit(5);
    });
    said.write("ready\n");
    for (std::atomic<unsigned> i = 0;; ++i) continue;  // no system call that the signal could interrupt
    return 0;
  });
  ASSERT_EQ(said.read_line(), "ready");
  ASSERT_EQ(kill(worker.pid(), SIGTERM), 0);
  EXPECT_EQ(said.read_line(), "stopping");
  const std::optional<int> status = worker.wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 5);
}

// OpenBLAS starts threads before main().
TEST(StopSignalTest, ThreadsThatAreOlderDoNotMatter) {
  TextPipe said;
  ForkedProcess worker([&] {
    std::thread([] {
      while (true) pause();
    }).detach();
    sigset_t term{};
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, nullptr);  // so that only the older thread can take it
    const StopSignal stop({SIGTERM}, [&](int) { _exit(5); });
    said.write("ready\n");
    while (true) pause();
    return 0;
  });
  ASSERT_EQ(said.read_line(), "ready");
  ASSERT_EQ(kill(worker.pid(), SIGTERM), 0);
  const std::optional<int> status = worker.wait();
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 5);
}

}  // namespace
}  // namespace dssync
