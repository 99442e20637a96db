// What a terminal and what a file get to see of a live line.
#include "terminal/live_line.h"

#include <gtest/gtest.h>

namespace dssync::cli {
namespace {

using std::chrono::milliseconds;

class LiveLineTest : public testing::Test {
 protected:
  LiveLine::Screen screen(bool rewrites, std::size_t columns = 80) {
    return {.rewrites = rewrites,
            .columns = [columns] { return columns; },
            .write = [this](const std::string& text) { written_ += text; },
            .style = {}};
  }

  const LiveLine::Clock::time_point start_{};
  std::string written_;
};

TEST_F(LiveLineTest, ATerminalSeesItAtOnceAndAtMostFiveTimesPerSecond) {
  LiveLine line(screen(true), start_);
  EXPECT_TRUE(line.is_due(start_));
  line.show("epoch 1", start_);
  EXPECT_FALSE(line.is_due(start_ + milliseconds(199)));
  EXPECT_TRUE(line.is_due(start_ + milliseconds(200)));
  EXPECT_EQ(written_, "\r\x1b[Kepoch 1");
}

TEST_F(LiveLineTest, AFileGetsAPlainLineEveryFiveSeconds) {
  LiveLine line(screen(false), start_);
  EXPECT_FALSE(line.is_due(start_ + milliseconds(4999)));
  EXPECT_TRUE(line.is_due(start_ + std::chrono::seconds(5)));
  line.show("epoch 1", start_ + std::chrono::seconds(5));
  EXPECT_FALSE(line.is_due(start_ + milliseconds(9999)));
  line.clear();
  EXPECT_EQ(written_, "epoch 1\n");
}

TEST_F(LiveLineTest, ItIsCutToTheWidthOfTheTerminal) {
  LiveLine line(screen(true, 10), start_);
  line.show("iteration 12345", start_);
  EXPECT_EQ(written_, "\r\x1b[Kiterat...");
}

TEST_F(LiveLineTest, ANoteStaysAboveTheLiveLine) {
  LiveLine line(screen(true), start_);
  line.note("first");
  line.show("epoch 1", start_);
  line.note("accuracy 90 %");
  line.clear();
  EXPECT_EQ(written_, "first\n\r\x1b[Kepoch 1\r\x1b[Kaccuracy 90 %\nepoch 1\r\x1b[K");
}

TEST_F(LiveLineTest, NothingIsClearedWhereNothingIsShown) {
  LiveLine line(screen(true), start_);
  line.clear();
  EXPECT_EQ(written_, "");
}

}  // namespace
}  // namespace dssync::cli
