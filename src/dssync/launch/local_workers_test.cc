// Real forks: that every end of a worker is seen and told, and that no end of the launcher leaves a worker behind.
#include "dssync/launch/local_workers.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/launch/testing.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;
using testing::adopt_orphans;
using testing::all_children_end;
using ::testing::ElementsAre;
using testing::ForkedProcess;
using ::testing::IsEmpty;
using testing::kTestPatience;
using ::testing::StartsWith;
using testing::TextPipe;

constexpr LocalWorkersOptions kHurried{.grace = milliseconds(20), .patience = milliseconds(200)};
constexpr LocalWorkersOptions kPatient{.grace = kTestPatience, .patience = kTestPatience};

[[noreturn]] void wait_forever() {
  while (true) pause();
}

TextPipe* told = nullptr;  // for signal handlers

TEST(LocalWorkersTest, EveryWorkerRunsOnceWithItsOwnRank) {
  TextPipe said;
  LocalWorkers workers(4, [&](int rank, LauncherChannel&) {
    said.write((std::to_string(rank) + "\n").c_str());
    return 0;
  });
  EXPECT_EQ(workers.size(), 4);
  const Supervision report = workers.supervise();
  EXPECT_TRUE(report.went_well());
  EXPECT_THAT(report.unresponsive, IsEmpty());
  said.close_write_end();
  std::string all = said.read_all();
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, "\n\n\n\n0123");
}

TEST(LocalWorkersTest, MessagesReachEveryWorkerWholeAndInOrder) {
  const std::string large(60'000, 'x');
  LocalWorkers workers(3, [&](int, LauncherChannel& launcher) {
    return launcher.receive() == "port 31234" && launcher.receive() == large ? 0 : 1;
  });
  workers.broadcast("port 31234");
  workers.broadcast(large);
  EXPECT_TRUE(workers.supervise().went_well());
}

TEST(LocalWorkersTest, AMessageCanBeLookedFor) {
  TextPipe said;
  LocalWorkers workers(1, [&](int, LauncherChannel& launcher) {
    const bool none_yet = !launcher.try_receive();
    said.write("looked\n");
    launcher.receive();
    const std::string second = launcher.receive();
    return none_yet && second == "second" && !launcher.try_receive() ? 0 : 1;
  });
  ASSERT_EQ(said.read_line(), "looked");
  workers.broadcast("first");
  workers.broadcast("second");
  EXPECT_TRUE(workers.supervise().went_well());
}

TEST(LocalWorkersTest, AKilledWorkerIsNamedAtOnceWhileOthersGoOn) {
  LocalWorkers workers(
      3, [](int, LauncherChannel& launcher) { return launcher.receive() == "stop" ? 0 : 1; }, kPatient);
  ASSERT_EQ(kill(workers.pid(1), SIGKILL), 0);
  int calls = 0;
  const Supervision report = workers.supervise([&](const LostWorker& lost) {
    ++calls;
    EXPECT_EQ(lost.rank, 1);
    EXPECT_EQ(lost.status, -1);
    EXPECT_EQ(lost.description, "was killed by signal 9 (Killed)");
    workers.broadcast("stop");  // also to one that is dead: no error
  });
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_FALSE(report.went_well());
  EXPECT_EQ(report.interrupted_by, 0);
  EXPECT_THAT(report.unresponsive, IsEmpty());
}

TEST(LocalWorkersTest, AWorkerThatOthersGiveUpEndsAtOnceAndIsTheCause) {
  LocalWorkers workers(
      2,
      [](int rank, LauncherChannel&) {
        if (rank == 1) raise(SIGSTOP);
        return 1;
      },
      kPatient);
  const Supervision report = workers.supervise([&](const LostWorker& lost) {
    EXPECT_EQ(lost.rank, 0);
    workers.give_up(0, "has ended already");
    workers.give_up(1, "gives no sign of life");
  });
  ASSERT_EQ(report.lost.size(), 2U);
  EXPECT_EQ(report.lost[0].rank, 1);
  EXPECT_EQ(report.lost[0].description, "gives no sign of life");
  EXPECT_EQ(report.lost[1].description, "ended with status 1");
  EXPECT_THAT(report.unresponsive, IsEmpty());
}

TEST(LocalWorkersTest, AStatusOtherThanZeroIsALoss) {
  LocalWorkers workers(2, [](int rank, LauncherChannel&) { return rank == 1 ? 7 : 0; });
  const Supervision report = workers.supervise();
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_EQ(report.lost[0].rank, 1);
  EXPECT_EQ(report.lost[0].status, 7);
  EXPECT_EQ(report.lost[0].description, "ended with status 7");
}

TEST(LocalWorkersTest, AnExceptionIsALineAndStatusOne) {
  ::testing::internal::CaptureStderr();
  LocalWorkers workers(1, [](int, LauncherChannel&) -> int { throw std::runtime_error("no data"); });
  const Supervision report = workers.supervise();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "rank 0: no data\n");
  ASSERT_EQ(report.lost.size(), 1U);
  EXPECT_EQ(report.lost[0].description, "ended with status 1");
}

TEST(LocalWorkersTest, OthersAreEndedAfterTheGrace) {
  LocalWorkers workers(
      3,
      [](int rank, LauncherChannel&) {
        if (rank == 2) return 1;
        wait_forever();
      },
      kHurried);
  const Supervision report = workers.supervise();
  ASSERT_EQ(report.lost.size(), 1U);  // those that were told to end are not lost
  EXPECT_EQ(report.lost[0].rank, 2);
  EXPECT_THAT(report.unresponsive, IsEmpty());
}

TEST(LocalWorkersTest, AWorkerThatIgnoresTheRequestIsKilled) {
  TextPipe ready;
  LocalWorkers workers(
      2,
      [&](int rank, LauncherChannel& launcher) {
        if (rank == 1) return launcher.receive() == "go" ? 1 : 0;
        std::signal(SIGTERM, SIG_IGN);
        ready.write("ready\n");
        wait_forever();
      },
      kHurried);
  ASSERT_EQ(ready.read_line(), "ready");
  workers.broadcast("go");
  EXPECT_THAT(workers.supervise().unresponsive, ElementsAre(0));
}

TEST(LocalWorkersTest, WorkersAreEasyToTellApart) {
  TextPipe ready;
  LocalWorkers workers(4, [&](int, LauncherChannel& launcher) {
    ready.write("ready\n");
    launcher.receive();
    return 0;
  });
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ready.read_line(), "ready");
  std::ifstream file("/proc/" + std::to_string(workers.pid(3)) + "/comm");
  std::string name;
  std::getline(file, name);
  EXPECT_EQ(name, "dssync-rank-3");
  workers.broadcast("end");
  EXPECT_TRUE(workers.supervise().went_well());
}

TEST(LocalWorkersTest, BufferedTextIsWrittenOnce) {
  ::testing::internal::CaptureStdout();
  std::printf("before ");
  LocalWorkers workers(2, [](int, LauncherChannel&) {
    std::printf("child ");
    return 0;
  });
  workers.supervise();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "before child child ");
}

TEST(LocalWorkersTest, WorkersEndWithTheObject) {
  pid_t pid = 0;
  {
    const LocalWorkers workers(2, [](int, LauncherChannel&) -> int { wait_forever(); });
    pid = workers.pid(1);
    ASSERT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(LocalWorkersTest, TheSignalsAreAsBefore) {
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGINT, nullptr, &before), 0);
  LocalWorkers(1, [](int, LauncherChannel&) { return 0; }).supervise();
  struct sigaction after {};
  ASSERT_EQ(sigaction(SIGINT, nullptr, &after), 0);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

// A launcher in a process of its own, whose workers end on SIGTERM and say so.
int launch_and_report(TextPipe& said, const LocalWorkersOptions& options) {
  told = &said;
  LocalWorkers workers(
      3,
      [](int, LauncherChannel&) -> int {
        std::signal(SIGTERM, [](int) {
          told->write("term\n");
          _exit(1);
        });
        told->write("ready\n");
        wait_forever();
      },
      options);
  const Supervision report = workers.supervise();
  said.write(("interrupted by " + std::to_string(report.interrupted_by) + ", lost " +
              std::to_string(report.lost.size()) + "\n")
                 .c_str());
  return 0;
}

void expect_ready(TextPipe& said) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(said.read_line(), "ready");
}

TEST(LocalWorkersTest, ASignalToTheLauncherEndsAllInOrder) {
  adopt_orphans();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    TextPipe said;
    ForkedProcess launcher([&] { return launch_and_report(said, kPatient); });
    expect_ready(said);
    ASSERT_EQ(kill(launcher.pid(), signal), 0);
    EXPECT_EQ(launcher.wait(), 0);
    said.close_write_end();
    EXPECT_EQ(said.read_all(), "term\nterm\nterm\ninterrupted by " + std::to_string(signal) + ", lost 0\n");
    EXPECT_TRUE(all_children_end());
  }
}

TEST(LocalWorkersTest, CtrlCInTheTerminalReachesTheWorkersThroughTheLauncher) {
  TextPipe said;
  ForkedProcess launcher([&] { return launch_and_report(said, kPatient); });
  expect_ready(said);
  ASSERT_EQ(kill(-launcher.pid(), SIGINT), 0);  // the whole process group, as a terminal does
  EXPECT_EQ(launcher.wait(), 0);
  said.close_write_end();
  EXPECT_EQ(said.read_all(), "term\nterm\nterm\ninterrupted by 2, lost 0\n");
}

TEST(LocalWorkersTest, ASecondCtrlCKillsWorkersThatDoNotEnd) {
  TextPipe said;
  told = &said;
  ForkedProcess launcher([&] {
    LocalWorkers workers(
        1,
        [](int, LauncherChannel&) -> int {
          std::signal(SIGTERM, [](int) { told->write("term\n"); });
          told->write("ready\n");
          wait_forever();
        },
        kPatient);
    return workers.supervise().unresponsive.size() == 1 ? 0 : 1;
  });
  ASSERT_EQ(said.read_line(), "ready");
  ASSERT_EQ(kill(-launcher.pid(), SIGINT), 0);
  ASSERT_EQ(said.read_line(), "term");
  ASSERT_EQ(kill(-launcher.pid(), SIGINT), 0);
  EXPECT_EQ(launcher.wait(), 0);
}

TEST(LocalWorkersTest, AnIgnoredHangupStaysIgnored) {
  TextPipe said;
  ForkedProcess launcher([&] {
    std::signal(SIGHUP, SIG_IGN);  // as nohup does
    return launch_and_report(said, kPatient);
  });
  expect_ready(said);
  ASSERT_EQ(kill(-launcher.pid(), SIGHUP), 0);
  ASSERT_EQ(kill(launcher.pid(), SIGTERM), 0);
  EXPECT_EQ(launcher.wait(), 0);
  said.close_write_end();
  EXPECT_THAT(said.read_all(), StartsWith("term\nterm\nterm\ninterrupted by 15"));
}

TEST(LocalWorkersTest, WorkersDieWithAKilledLauncher) {
  adopt_orphans();
  TextPipe said;
  ForkedProcess launcher([&] { return launch_and_report(said, kPatient); });
  expect_ready(said);
  ASSERT_EQ(kill(launcher.pid(), SIGKILL), 0);
  const std::optional<int> status = launcher.wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_TRUE(all_children_end());
  said.close_write_end();
  EXPECT_EQ(said.read_all(), "");
}

}  // namespace
}  // namespace dssync
