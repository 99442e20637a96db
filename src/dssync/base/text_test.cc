// Quoting and guessing.
#include "dssync/base/text.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

constexpr std::array<std::string_view, 4> kKeys{"nic", "uplink", "latency", "workers"};

TEST(TextTest, QuoteIsSafeToPrint) {
  EXPECT_EQ(quote("rack-a"), "\"rack-a\"");
  EXPECT_EQ(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(quote("\x1b[31m\n"), "\"\\x1b[31m\\x0a\"");
}

TEST(TextTest, QuoteCutsLongTextAtACharacter) {
  EXPECT_EQ(quote(std::string(100, 'a')), "\"" + std::string(60, 'a') + "...\"");
  EXPECT_EQ(quote(std::string(59, 'a') + "\u00B5" + "tail"), "\"" + std::string(59, 'a') + "...\"");
}

TEST(TextTest, NearestFindsMisspellings) {
  EXPECT_EQ(nearest("uplnk", kKeys), "uplink");
  EXPECT_EQ(nearest("Latency", kKeys), "latency");
  EXPECT_EQ(nearest("worker", kKeys), "workers");
  EXPECT_EQ(nearest("nics", kKeys), "nic");
}

TEST(TextTest, NearestDoesNotGuessWildly) {
  EXPECT_EQ(nearest("colour", kKeys), "");
  EXPECT_EQ(nearest("", kKeys), "");
  EXPECT_EQ(nearest(std::string(1000, 'u'), kKeys), "");
}

TEST(TextTest, InputErrorNamesThePlace) {
  EXPECT_STREQ(InputError("net.yaml", 3, "is wrong").what(), "net.yaml:3: is wrong");
  EXPECT_STREQ(InputError("net.yaml", 0, "is wrong").what(), "net.yaml: is wrong");
}

}  // namespace
}  // namespace dssync
