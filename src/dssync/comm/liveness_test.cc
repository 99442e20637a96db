#include "dssync/comm/liveness.h"

#include <condition_variable>
#include <memory>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/comm/c10d/bounded_store.h"
#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;
using testing::hash_store;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StoppableConnection;

constexpr milliseconds kBeat{50};
constexpr milliseconds kSilence{500};

LivenessOptions options_of(Rank rank, int size) {
  return {.rank = rank, .size = size, .beat = kBeat, .silence = kSilence};
}

// One worker's liveness, on a connection that can stand still.
struct Worker {
  Worker(const Store& store, const LivenessOptions& options)
      : connection(c10::make_intrusive<StoppableConnection>(store)),
        losses(std::make_shared<LossRecord>(options.rank)),
        liveness(std::make_unique<Liveness>(connection, losses, options)) {}

  c10::intrusive_ptr<StoppableConnection> connection;
  std::shared_ptr<LossRecord> losses;
  std::unique_ptr<Liveness> liveness;
};

// Waits for the first loss that somebody hears of.
class Listener {
 public:
  explicit Listener(Liveness& liveness) : subscription_(liveness.on_loss([this](const Loss& loss) { hear(loss); })) {}

  Loss first() {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [this] { return !losses_.empty(); });
    return losses_.front();
  }

 private:
  void hear(const Loss& loss) {
    const std::lock_guard lock(mutex_);
    losses_.push_back(loss);
    heard_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<Loss> losses_;
  LossSubscription subscription_;
};

std::vector<std::unique_ptr<Worker>> workers_on(const Store& store, int size) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (Rank rank = 0; rank < size; ++rank) {
    workers.push_back(std::make_unique<Worker>(store, options_of(rank, size)));
  }
  // All have been seen.
  for (Rank rank = 0; rank < size; ++rank) store->wait({"pulse/" + std::to_string(rank)});
  return workers;
}

TEST(LivenessTest, AStoppedWorkerIsNamedByAllOthersAndAccusesNobody) {
  const Store store = hash_store();
  const auto workers = workers_on(store, 5);
  workers[1]->connection->stop();
  for (const Rank rank : {0, 2, 3, 4}) {
    const Loss loss = Listener(*workers[static_cast<std::size_t>(rank)]->liveness).first();
    EXPECT_EQ(loss.text(), "rank 1 gives no sign of life") << "at rank " << rank;
    EXPECT_STREQ(workers[static_cast<std::size_t>(rank)]->liveness->explain("averaging", {0, 1}, "timeout").what(),
                 ("rank " + std::to_string(rank) + ": averaging: rank 1 gives no sign of life").c_str());
  }
  workers[1]->connection->go_on();
  const Loss own = Listener(*workers[1]->liveness).first();
  EXPECT_EQ(own.rank, 1);
  EXPECT_TRUE(workers[1]->losses->is_given_up());
  EXPECT_STREQ(workers[1]->liveness->explain("averaging", {0, 1}, "connection closed").what(),
               "rank 1: averaging: the others have given this worker up: rank 1 gives no sign of life");
  for (const auto& worker : workers) {
    for (const Loss& loss : worker->losses->after(0)) EXPECT_EQ(loss.rank, 1) << loss.text();
  }
}

TEST(LivenessTest, NeighboursThatStopTogetherAreNamedOneAfterTheOther) {
  const Store store = hash_store();
  const auto workers = workers_on(store, 6);
  for (const std::size_t stopped : {1, 2, 3, 4}) workers[stopped]->connection->stop();
  for (const Rank expected : {1, 2, 3, 4}) {
    while (!workers[5]->losses->has(expected)) std::this_thread::yield();
  }
  EXPECT_FALSE(workers[5]->losses->has(0));
  for (const std::size_t stopped : {1, 2, 3, 4}) workers[stopped]->connection->go_on();
}

TEST(LivenessTest, WhoLeavesIsNotLost) {
  const Store store = hash_store();
  const auto workers = workers_on(store, 3);
  workers[1]->liveness.reset();
  EXPECT_STREQ(workers[0]->liveness->explain("averaging", {0, 1}, "Connection closed by peer").what(),
               "rank 0: averaging: rank 1 has left (Connection closed by peer)");
  EXPECT_THAT(workers[0]->liveness->losses(), IsEmpty());
}

TEST(LivenessTest, WhoIsBehindIsNamedWhereAllLive) {
  const Store store = hash_store();
  const auto workers = workers_on(store, 3);
  workers[0]->liveness->set_progress(9);
  workers[1]->liveness->set_progress(7);
  workers[2]->liveness->set_progress(9);
  EXPECT_STREQ(workers[0]->liveness->explain("averaging", {0, 1, 2}, "timed out").what(),
               "rank 0: averaging: rank 1 is still at iteration 7: timed out");
}

TEST(LivenessTest, AReportedFailureIsHeardByAll) {
  const Store store = hash_store();
  const auto workers = workers_on(store, 3);
  workers[2]->liveness->report_failure("the disk is full");
  EXPECT_TRUE(workers[2]->liveness->has_reported_failure());
  for (const auto& worker : workers) {
    EXPECT_EQ(Listener(*worker->liveness).first().text(), "rank 2 failed: the disk is full");
  }
  EXPECT_EQ(workers[0]->liveness->losses(), "rank 2 failed: the disk is full");
  EXPECT_THAT(workers[2]->liveness->losses(), IsEmpty()) << "one's own failure explains no other";
}

TEST(LivenessTest, ThePublisherOfALossMayEndMidway) {
  const Store store = hash_store();
  store->add("losses/count", 1);  // and no text follows
  publish_loss(store, 2, "was killed by signal 9 (Killed)");
  const auto workers = workers_on(store, 4);
  EXPECT_EQ(Listener(*workers[0]->liveness).first().text(), "rank 2 was killed by signal 9 (Killed)");
}

TEST(LivenessTest, TheFirstCauseOfALossCounts) {
  const Store store = hash_store();
  publish_loss(store, 1, "was killed by signal 9 (Killed)");
  publish_loss(store, 1, "ended");
  const auto workers = workers_on(store, 3);
  Listener(*workers[0]->liveness).first();
  EXPECT_EQ(workers[0]->liveness->losses(), "rank 1 was killed by signal 9 (Killed)");
}

TEST(LivenessTest, WithoutAConnectionOfItsOwnItIsNotWatchedButHears) {
  const Store store = hash_store();
  LivenessOptions options = options_of(0, 2);
  options.has_own_connection = false;
  const Worker worker(store, options);
  publish_loss(store, 1, "ended");
  EXPECT_EQ(Listener(*worker.liveness).first().text(), "rank 1 ended");
  EXPECT_FALSE(store->check({"pulse/0"}));
}

// A worker whose store stops.
class SilentStoreTest : public ::testing::Test {
 protected:
  PeerError explanation(bool rank_0_serves_store) {
    const LivenessOptions options = options_of(1, 2);
    const auto connection = c10::make_intrusive<StoppableConnection>(hash_store());
    const auto losses = std::make_shared<LossRecord>(1);
    PeerError result("");
    {
      Liveness liveness(c10::make_intrusive<BoundedStore>(connection, kSilence), losses, options);
      if (rank_0_serves_store) liveness.set_store_server(0);
      connection->stop();
      result = liveness.explain("averaging", {0, 1}, "timed out");
    }
    connection->go_on();
    return result;
  }
};

TEST_F(SilentStoreTest, ItIsSaid) {
  EXPECT_STREQ(
      explanation(false).what(),
      "rank 1: averaging: timed out; the store does not answer, either (the store has not answered for 0.5 s)");
}

TEST_F(SilentStoreTest, ItIsTheSilenceOfWhoServesIt) {
  EXPECT_THAT(explanation(true).what(), HasSubstr("rank 1: averaging: rank 0 gives no sign of life"));
}

}  // namespace
}  // namespace dssync
