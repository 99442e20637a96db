#include "text/style.h"

#include <gtest/gtest.h>

namespace dssync::cli {
namespace {

constexpr Style kUnicode{.utf8 = true, .color = false};
constexpr Style kAscii{.utf8 = false, .color = false};

TEST(StyleTest, BarsGrowInEighthsOfAColumn) {
  EXPECT_EQ(kUnicode.bar(0.5, 4), "██");
  EXPECT_EQ(kUnicode.bar(0.625, 4), "██▌");
  EXPECT_EQ(kAscii.bar(0.5, 4), "##");
}

TEST(StyleTest, BarsShowEvenALittleAndNeverOverflow) {
  EXPECT_EQ(kUnicode.bar(1e-9, 10), "▏");
  EXPECT_EQ(kAscii.bar(1e-9, 10), "#");
  EXPECT_EQ(kAscii.bar(7, 3), "###");
  EXPECT_EQ(kAscii.bar(0, 3), "");
}

TEST(StyleTest, PaintsOnlyInColor) {
  EXPECT_EQ(kUnicode.paint("x", Tint::kRed), "x");
  EXPECT_EQ((Style{.utf8 = false, .color = true}.paint("x", Tint::kRed)), "\x1b[31mx\x1b[0m");
}

TEST(StyleTest, WidthCountsCodePoints) {
  EXPECT_EQ(width("├─ rack"), 7U);
  EXPECT_EQ(pad_left("…", 3), "  …");
  EXPECT_EQ(clip("äöüß", 3, kUnicode), "äö…");
  EXPECT_EQ(clip("abcdef", 4, kAscii), "a...");
}

TEST(StyleTest, WrapsBetweenWords) {
  const std::string text = wrap(std::string(60, 'a') + " " + std::string(60, 'b'), "- ", "  ");
  EXPECT_EQ(text, "- " + std::string(60, 'a') + "\n  " + std::string(60, 'b') + "\n");
}

TEST(StyleTest, NamesCannotSteerTheTerminal) { EXPECT_EQ(printable("a\x1b[2J\n"), "a?[2J?"); }

TEST(StyleTest, CountsInWords) {
  EXPECT_EQ(counted(1, "host"), "1 host");
  EXPECT_EQ(counted(2, "switch"), "2 switches");
}

}  // namespace
}  // namespace dssync::cli
