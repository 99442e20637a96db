#include "dssync/comm/c10d/bounded_store.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/comm/c10d/store.h"
#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::hash_store;
using ::testing::HasSubstr;
using testing::message_of;
using testing::StoppableConnection;

TEST(BoundedStoreTest, PassesCallsOn) {
  const Store inner = hash_store();
  BoundedStore store(inner, seconds(30));
  put_text(store, "key", "value");
  EXPECT_EQ(get_text(*inner, "key"), "value");
  EXPECT_EQ(get_text(store, "key"), "value");
  EXPECT_EQ(store.add("count", 3), 3);
  EXPECT_EQ(store.add("count", 0), 3);
  EXPECT_TRUE(store.check({"key"}));
  EXPECT_FALSE(store.check({"no key"}));
}

TEST(BoundedStoreTest, AKeyThatDoesNotComeIsNamed) {
  BoundedStore store(hash_store(), milliseconds(50));
  EXPECT_THAT(message_of<std::runtime_error>([&] { store.get("no key"); }), HasSubstr("'no key'"));
}

TEST(BoundedStoreTest, ALossEndsTheWait) {
  std::atomic<bool> is_lost = false;
  BoundedStore store(hash_store(), seconds(30), [&] { return is_lost ? "rank 3 is gone" : ""; });
  std::thread other([&] { is_lost = true; });
  EXPECT_EQ(message_of<std::runtime_error>([&] { store.get("no key"); }), "rank 3 is gone");
  other.join();
  put_text(store, "key", "was set before");
  EXPECT_EQ(get_text(store, "key"), "was set before");
}

TEST(BoundedStoreTest, AStoreThatStandsStillIsLeftAlone) {
  const auto stopped = c10::make_intrusive<StoppableConnection>(hash_store());
  BoundedStore store(stopped, milliseconds(100));
  stopped->stop();
  EXPECT_EQ(message_of<StoreSilence>([&] { store.add("count", 1); }), "the store has not answered for 0.1 s");
  EXPECT_EQ(message_of<StoreSilence>([&] { store.check({"key"}); }), "the store has not answered for 0.1 s");
  stopped->go_on();
  // It has done what it was asked for, and goes on.
  for (bool is_back = false; !is_back;) {
    try {
      is_back = store.add("count", 0) == 1;
    } catch (const StoreSilence&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace dssync
