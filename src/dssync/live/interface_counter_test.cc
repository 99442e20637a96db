// What this machine's interfaces tell.
#include "dssync/live/interface_counter.h"

#include <cstdlib>
#include <ifaddrs.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>

namespace dssync {
namespace {

using ::testing::Eq;

// Name and address of an interface that other machines are reached by; empty where this one has none.
std::pair<std::string, std::string> some_interface() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(found, freeifaddrs);
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    const bool is_usable = (entry->ifa_flags & IFF_LOOPBACK) == 0 && entry->ifa_addr != nullptr;
    if (!is_usable || entry->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text, sizeof text);
    return {entry->ifa_name, text};
  }
  return {};
}

class InterfaceCounterTest : public ::testing::Test {
 protected:
  void SetUp() override { unsetenv("GLOO_SOCKET_IFNAME"); }
  void TearDown() override { unsetenv("GLOO_SOCKET_IFNAME"); }
};

TEST_F(InterfaceCounterTest, LoopbackIsNotCounted) {
  EXPECT_THAT(InterfaceCounter("127.0.0.1").read(), Eq(std::nullopt));
  EXPECT_THAT(InterfaceCounter("::1").read(), Eq(std::nullopt));
  setenv("GLOO_SOCKET_IFNAME", "lo", 1);
  EXPECT_THAT(InterfaceCounter("127.0.0.1").read(), Eq(std::nullopt));
}

TEST_F(InterfaceCounterTest, AnAddressThatNoInterfaceHasIsNotCounted) {
  EXPECT_THAT(InterfaceCounter("192.0.2.1").read(), Eq(std::nullopt));
  setenv("GLOO_SOCKET_IFNAME", "nosuch0", 1);
  EXPECT_THAT(InterfaceCounter(some_interface().second).read(), Eq(std::nullopt));
}

TEST_F(InterfaceCounterTest, AnInterfaceIsFoundByItsAddressOrItsName) {
  const auto [name, address] = some_interface();
  if (name.empty()) GTEST_SKIP() << "this machine has no interface but loopback";
  const auto by_address = InterfaceCounter(address).read();
  ASSERT_TRUE(by_address);
  setenv("GLOO_SOCKET_IFNAME", name.c_str(), 1);
  const auto by_name = InterfaceCounter("127.0.0.1").read();
  ASSERT_TRUE(by_name);
  EXPECT_GE(by_name->received, by_address->received);
  EXPECT_GE(by_name->sent, by_address->sent);
}

}  // namespace
}  // namespace dssync
