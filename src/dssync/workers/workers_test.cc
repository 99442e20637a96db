// Real processes: that workers find each other, that a lost one is told to all, and that each end says what it must.
//
// Every run happens in a forked process, because a launcher forks before its store starts threads.
#include <chrono>
#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/launch/testing.h"
#include "dssync/workers/launcher.h"
#include "dssync/workers/worker.h"

namespace dssync {
namespace {

using ::testing::AllOf;
using testing::ForkedProcess;
using ::testing::HasSubstr;
using testing::TextPipe;

// Writes complaints as "rank 3: MESSAGE".
Complain complain_into(TextPipe& said, int rank) {
  return [&said, rank](const std::string& message, int status) {
    said.write(fmt::format("rank {}: {}\n", rank, message).c_str());
    return status;
  };
}

// Launches workers that do `job`, and writes how it went.
int launch_and_tell(TextPipe& said, const LaunchOptions& options, const Job& job) {
  const Supervision outcome = launch_workers(options, [&](const Assignment& assignment, LauncherChannel& launcher) {
    return run_worker({.assignment = assignment,
                       .timeout = testing::kTestPatience,
                       .launcher = &launcher,
                       .complain = complain_into(said, assignment.rank)},
                      job);
  });
  std::string text = outcome.went_well() ? "all is well" : fmt::format("interrupted by {}", outcome.interrupted_by);
  if (!outcome.lost.empty()) text += fmt::format(", first {}", loss_text(outcome.lost.front()));
  said.write((text + "\n").c_str());
  return outcome.lost.empty() ? 0 : outcome.lost.front().status;
}

// What a run in a process of its own says until it has ended, and its status in the last line.
std::string transcript(TextPipe& said, const std::function<int()>& run) {
  ForkedProcess process(run);
  const std::optional<int> status = process.wait();
  said.close_write_end();
  return said.read_all() + (status ? fmt::format("status {}", WEXITSTATUS(*status)) : "did not end");
}

TEST(LauncherTest, WorkersMeetAndDoTheirJob) {
  TextPipe said;
  const std::string text = transcript(said, [&] {
    return launch_and_tell(said, {.workers = 3}, [&](World& world, WorkerEnding&) {
      world.barrier("all are here");
      if (world.rank() == 2) said.write(fmt::format("{} workers met\n", world.size()).c_str());
      return ExitStatus::kDone;
    });
  });
  EXPECT_EQ(text, "3 workers met\nall is well\nstatus 0");
}

TEST(LauncherTest, EveryWorkerEntersItsHostBeforeItMeetsTheOthers) {
  TextPipe said;
  const std::string text = transcript(said, [&] {
    const auto enter = [&](int rank) {
      said.write(fmt::format("enter {}\n", rank).c_str());
      return std::string("127.0.0.1");
    };
    return launch_and_tell(said, {.workers = 2, .enter_host = enter}, [&](World& world, WorkerEnding&) {
      world.barrier("all are here");
      if (world.rank() == 0) said.write("met\n");
      return ExitStatus::kDone;
    });
  });
  EXPECT_THAT(text,
              AllOf(HasSubstr("enter 0\n"), HasSubstr("enter 1\n"), ::testing::EndsWith("met\nall is well\nstatus 0")));
}

TEST(LauncherTest, TheFirstLossIsTheOutcomeAndTheOthersHearOfIt) {
  TextPipe said;
  const std::string text = transcript(said, [&] {
    return launch_and_tell(said, {.workers = 2}, [&](World& world, WorkerEnding&) -> int {
      if (world.rank() == 1) throw InputError("a file is missing");
      world.barrier("never complete");
      return ExitStatus::kDone;
    });
  });
  EXPECT_THAT(text, AllOf(HasSubstr("rank 1: a file is missing\n"), HasSubstr("rank 1 ended with status 2"),
                          HasSubstr(", first rank 1 ended with status 2\nstatus 2")));
  EXPECT_THAT(text, HasSubstr("rank 0: "));
}

TEST(LauncherTest, AWorkerThatDoesNotNoticeIsEndedAndSaysWhy) {
  TextPipe said;
  const LaunchOptions hurried{.workers = 2, .ending = {.grace = std::chrono::milliseconds(100)}};
  const std::string text = transcript(said, [&] {
    return launch_and_tell(said, hurried, [&](World& world, WorkerEnding& ending) -> int {
      ending.set_on_end([&](WorkerEnding::Kind kind, const std::string& cause) {
        said.write(fmt::format("{}: {}\n", kind == WorkerEnding::Kind::kFailed ? "failed" : "?", cause).c_str());
      });
      world.barrier("both are ready");
      if (world.rank() == 1) raise(SIGKILL);
      while (true) pause();
    });
  });
  EXPECT_THAT(text, AllOf(HasSubstr("failed: rank 1 was killed by signal 9 (Killed)\n"),
                          HasSubstr("rank 0: ended by the launcher: rank 1 was killed by signal 9 (Killed)\n"),
                          HasSubstr(", first rank 1 was killed by signal 9 (Killed)\n")));
}

TEST(LauncherTest, AWorkerThatStandsStillIsEndedWhenTheOthersHaveNamedIt) {
  TextPipe said;
  const LaunchOptions patient{.workers = 3, .ending = {.grace = testing::kTestPatience}};
  const std::string text = transcript(said, [&] {
    return launch_and_tell(said, patient, [&](World& world, WorkerEnding&) -> int {
      world.barrier("all are here");
      if (world.rank() == 1) raise(SIGSTOP);
      world.barrier("never complete");
      return ExitStatus::kDone;
    });
  });
  for (const int rank : {0, 2}) {
    const std::string named = "waiting at 'never complete': rank 1 gives no sign of life";
    EXPECT_THAT(text, HasSubstr(fmt::format("rank {}: {}", rank, named)));
  }
  EXPECT_THAT(text, HasSubstr(", first rank 1 gives no sign of life\n"));
}

// A worker that another program started, alone; it serves the store itself.
int work_alone(TextPipe& said, const Job& job) {
  Assignment assignment;
  assignment.store_port = 0;
  return run_worker({.assignment = assignment,
                     .timeout = testing::kTestPatience,
                     .launcher = nullptr,
                     .complain = complain_into(said, assignment.rank)},
                    job);
}

TEST(WorkerTest, RankZeroServesTheStoreWhereNobodyElseDoes) {
  TextPipe said;
  const std::string text = transcript(said, [&] {
    return work_alone(said, [&](World& world, WorkerEnding&) {
      said.write(fmt::format("one of {}\n", world.size()).c_str());
      return 7;
    });
  });
  EXPECT_EQ(text, "one of 1\nstatus 7");
}

TEST(WorkerTest, WhatAJobThrowsIsToldAndBecomesAStatus) {
  TextPipe said;
  const std::string text = transcript(
      said, [&] { return work_alone(said, [](World&, WorkerEnding&) -> int { throw Error("the disk is full"); }); });
  EXPECT_EQ(text, "rank 0: the disk is full\nstatus 1");
}

TEST(WorkerTest, ASignalEndsTheJobInAnOrderlyWay) {
  TextPipe said;
  const std::string text = transcript(said, [&] {
    return work_alone(said, [&](World&, WorkerEnding& ending) -> int {
      ending.set_on_end([&](WorkerEnding::Kind kind, const std::string& cause) {
        if (kind == WorkerEnding::Kind::kInterrupted) said.write(fmt::format("on_end: {}\n", cause).c_str());
        throw Error("the log is full");
      });
      raise(SIGTERM);
      while (true) pause();
    });
  });
  EXPECT_EQ(text,
            "on_end: interrupted by signal 15 (Terminated)\nrank 0: the log is full\n"
            "rank 0: interrupted by signal 15 (Terminated)\nstatus 1");
}

}  // namespace
}  // namespace dssync
