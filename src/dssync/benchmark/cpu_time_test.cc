#include "dssync/benchmark/cpu_time.h"

#include <sstream>

#include <gtest/gtest.h>

namespace dssync {
namespace {

CpuTime read(const std::string& text) {
  std::istringstream stream(text);
  return read_cpu_time(stream);
}

TEST(CpuTimeTest, IdleAndWaitingForDisksAreNotBusy) {
  //                          user nice system idle iowait irq softirq steal guest
  const CpuTime from = read("cpu  100 10 50 1000 40 5 15 20 99 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  EXPECT_EQ(from.busy, 200);
  EXPECT_EQ(from.total, 1240);
  const CpuTime to = read("cpu  160 10 70 1010 50 5 15 20 99 0\n");
  EXPECT_DOUBLE_EQ(busy_share(from, to), 0.8);  // 80 of 100 ticks
}

TEST(CpuTimeTest, WhatCannotBeReadIsNotBusy) {
  EXPECT_EQ(read("").total, 0);
  EXPECT_EQ(read("cpu 1 2\n").total, 0);
  EXPECT_EQ(busy_share({5, 10}, {5, 10}), 0);
}

}  // namespace
}  // namespace dssync
