#include "dssync/comm/ticker.h"

#include <atomic>
#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace dssync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(TickerTest, GoesOnUntilItIsTold) {
  std::atomic<int> calls{0};
  std::promise<void> third;
  const Ticker ticker(milliseconds(1), [&] {
    if (++calls < 3) return true;
    third.set_value();  // a second time it would throw
    return false;
  });
  third.get_future().wait();
}

TEST(TickerTest, EndsWithoutWaitingForItsTime) {
  std::promise<void> called;
  const Ticker ticker(hours(1), [&] {
    called.set_value();
    return true;
  });
  called.get_future().wait();
}

}  // namespace
}  // namespace dssync
