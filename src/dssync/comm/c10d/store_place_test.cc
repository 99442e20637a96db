#include "dssync/comm/c10d/store_place.h"

#include <chrono>

#include <gtest/gtest.h>

#include "dssync/comm/c10d/store.h"

namespace dssync {
namespace {

TEST(StorePlaceTest, AStoreOnThisMachineIsReachedFromItsOwnAddress) {
  EXPECT_EQ(address_towards({"127.0.0.1", 29500}), "127.0.0.1");
  EXPECT_EQ(address_towards({"no such host", 29500}), "127.0.0.1");
  EXPECT_EQ((StorePlace{"node1", 29500}).text(), "node1:29500");
}

TEST(StorePlaceTest, WhoServesTheStoreKnowsIt) {
  StorePlace place{"127.0.0.1", 0};
  {
    const ServedStore served = serve_store(0, std::chrono::seconds(10));
    place.port = served.port;
    EXPECT_TRUE(is_served_here(place));
    EXPECT_FALSE(is_served_here({"192.0.2.1", served.port})) << "another machine's";
    EXPECT_FALSE(is_served_here({"127.0.0.1", static_cast<std::uint16_t>(served.port + 1)}));
  }
  EXPECT_FALSE(is_served_here(place)) << "any more";
}

}  // namespace
}  // namespace dssync
