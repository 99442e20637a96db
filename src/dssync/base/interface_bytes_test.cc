#include "dssync/base/interface_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(InterfaceBytesTest, ReadsWhatEveryInterfaceCarried) {
  const auto bytes = interface_bytes(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
      "compressed\n"
      "    lo:   12345      67    0    0    0     0          0         0    12345      67    0    0    0     0       0 "
      "         0\n"
      "  eth0:18446744073709551615 1 2 3 4 5 6 7 42 9 0 0 0 0 0 0\n");
  EXPECT_THAT(bytes, ElementsAre(Pair("eth0", InterfaceBytes{18446744073709551615U, 42}),
                                 Pair("lo", InterfaceBytes{12345, 12345})));
}

TEST(InterfaceBytesTest, LeavesOutWhatIsNoInterface) {
  EXPECT_THAT(interface_bytes(""), IsEmpty());
  EXPECT_THAT(interface_bytes("eth0: 1 2 3\nno colon here\n eth1: a b c d e f g h i\n"), IsEmpty());
}

}  // namespace
}  // namespace dssync
