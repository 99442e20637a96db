#include "dssync/comm/rendezvous.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::message_of;

class RendezvousTest : public ::testing::Test {
 protected:
  static Candidate candidate(Rank rank, int size, const RunId& run = {}) {
    return {.rank = rank,
            .size = size,
            .run = run,
            .address = "10.0.0." + std::to_string(rank),
            .store_place = "node1:29500",
            .timeout = milliseconds(300)};
  }

  std::string refusal(const Candidate& who) {
    return message_of<InputError>([&] { find_run(*store_, who); });
  }

  Store store_ = c10::make_intrusive<c10d::HashStore>();
};

TEST_F(RendezvousTest, Rank0NamesTheRunWhereNobodyElseDoes) {
  std::thread late([&] { EXPECT_EQ(find_run(*store_, candidate(1, 2)).name.size(), 32u); });
  const RunId run = find_run(*store_, candidate(0, 2));
  late.join();
  EXPECT_EQ(find_run(*store_, candidate(1, 2)), run);
  EXPECT_EQ(find_run(*store_, candidate(0, 2)), run) << "another world of the same process";
}

TEST_F(RendezvousTest, TheLaunchersNameCounts) {
  EXPECT_EQ(find_run(*store_, candidate(0, 2, {"job7", 1})), (RunId{"job7", 1}));
  EXPECT_EQ(find_run(*store_, candidate(1, 2, {"job7", 1})), (RunId{"job7", 1}));
}

TEST_F(RendezvousTest, WithoutRank0ThereIsNoRun) {
  EXPECT_EQ(message_of<PeerError>([&] { find_run(*store_, candidate(2, 3)); }),
            "rank 2: waiting for all 3 workers: rank 0 did not come within 0.3 s");
}

TEST_F(RendezvousTest, AnotherRunIsRefusedByName) {
  announce_run(*store_, {"new", 0}, 3);
  for (const Rank rank : {0, 2}) {
    EXPECT_EQ(refusal(candidate(rank, 3, {"old", 0})),
              "rank " + std::to_string(rank) + " belongs to run old, but the store at node1:29500 serves run new");
  }
  EXPECT_EQ(find_run(*store_, candidate(2, 3, {"new", 0})).name, "new");
}

TEST_F(RendezvousTest, AnEarlierAttemptIsRefused) {
  announce_run(*store_, {"job7", 0}, 2);
  EXPECT_EQ(find_run(*store_, candidate(0, 2, {"job7", 1})).attempt, 1) << "workers were started anew";
  EXPECT_EQ(refusal(candidate(1, 2, {"job7", 0})),
            "rank 1 belongs to run job7, but the store at node1:29500 serves run job7, attempt 1");
}

TEST_F(RendezvousTest, ALaterAttemptWaitsForItsRank0) {
  announce_run(*store_, {"job7", 0}, 2);
  std::thread early([&] { EXPECT_EQ(find_run(*store_, candidate(1, 2, {"job7", 1})).attempt, 1); });
  find_run(*store_, candidate(0, 2, {"job7", 1}));
  early.join();
}

TEST_F(RendezvousTest, ADifferingNumberOfWorkersIsRefused) {
  announce_run(*store_, {"job7", 0}, 2);
  EXPECT_EQ(refusal(candidate(3, 4)), "rank 3 was started as one of 4 workers, but run job7 has 2");
}

TEST_F(RendezvousTest, MembersKnowEachOther) {
  const RunId run{"job7", 0};
  const auto nobody_lost = [] { return std::string(); };
  Membership other;
  std::thread thread([&] { other = join_run(store_, run, candidate(1, 2), nobody_lost); });
  const Membership mine = join_run(store_, run, candidate(0, 2), nobody_lost);
  thread.join();
  EXPECT_EQ(mine.run, run);
  EXPECT_EQ(mine.members, other.members);
  ASSERT_EQ(mine.members.size(), 2u);
  EXPECT_EQ(mine.members[1].address, "10.0.0.1");
  EXPECT_THAT(mine.members[1].process, HasSubstr("process "));
}

TEST_F(RendezvousTest, ATakenRankIsRefusedAndItsOwnerNamed) {
  const auto nobody_lost = [] { return std::string(); };
  join_run(store_, {"job7", 0}, candidate(0, 1), nobody_lost);
  EXPECT_THAT(message_of<InputError>([&] {
                join_run(store_, {"job7", 0}, candidate(0, 1), nobody_lost);
              }),
              ::testing::AllOf(HasSubstr("rank 0 has joined already as process "),
                               HasSubstr(": two workers were started with the same rank")));
}

}  // namespace
}  // namespace dssync
