#include "dssync/report/markup.h"

#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(MarkupTest, NothingBecomesATag) {
  EXPECT_EQ(escaped("<script>a && \"b\" 'c'</script>"),
            "&lt;script&gt;a &amp;&amp; &quot;b&quot; &#39;c&#39;&lt;/script&gt;");
}

TEST(MarkupTest, OnlyValidCharactersGetThrough) {
  EXPECT_EQ(escaped("Köln 東京 😀"), "Köln 東京 😀");
  EXPECT_EQ(escaped("a\x01z"), "a\ufffdz");
  EXPECT_EQ(escaped("\xff\xfe"), "\ufffd\ufffd");
  EXPECT_EQ(escaped("\xc3"), "\ufffd");                      // cut off
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // half of a surrogate pair
  EXPECT_EQ(escaped("\xc0\xaf"), "\ufffd\ufffd");            // a longer way to write a slash
}

TEST(MarkupTest, CoordinatesAreShort) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.34567), "12.3");
  EXPECT_EQ(coordinate(-0.01), "0");
}

TEST(MarkupTest, QuantitiesForPeople) {
  EXPECT_EQ(shown_percent(0.8625), "86.2\u00a0%");
  EXPECT_EQ(shown_seconds(0.34), "340\u00a0ms");
  EXPECT_EQ(shown_seconds(125), "2\u00a0min\u00a005\u00a0s");
  EXPECT_EQ(shown_seconds(3720), "1\u00a0h\u00a002\u00a0min");
  EXPECT_EQ(shown_bytes(1.6e6), "1.6\u00a0MB");
  EXPECT_EQ(shown_ratio(4.083), "4.08×");
  EXPECT_EQ(shown_count(1234567), "1,234,567");
  EXPECT_EQ(shown_count(-123), "-123");
}

TEST(MarkupTest, LongNamesAreCut) {
  EXPECT_EQ(shortened("rack", 10), "rack");
  EXPECT_EQ(shortened("rack-number", 5), "rack…");
  EXPECT_EQ(shortened("ääää", 4), "ääää");
  EXPECT_EQ(shortened("äääää", 4), "äää…");
}

TEST(MarkupTest, DrawingsHaveTitles) {
  const std::string svg = begin_svg({"chart-1", "A < B", "why", 10, 20.5});
  EXPECT_NE(svg.find("viewBox=\"0 0 10 20.5\""), std::string::npos);
  EXPECT_NE(svg.find("<title id=\"chart-1-t\">A &lt; B</title><desc id=\"chart-1-d\">why</desc>"), std::string::npos);
}

}  // namespace
}  // namespace dssync
