// Bracket ranges in names.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string range_problem(std::string_view pattern, std::size_t limit = 100) {
  try {
    expand_host_range(pattern, limit);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HostRangeTest, ANameWithoutBracketsIsItself) { EXPECT_THAT(expand_host_range("node-7"), ElementsAre("node-7")); }

TEST(HostRangeTest, ExpandsRangesListsAndPadding) {
  EXPECT_THAT(expand_host_range("a[0-3]"), ElementsAre("a0", "a1", "a2", "a3"));
  EXPECT_THAT(expand_host_range("n[01-03,7]x"), ElementsAre("n01x", "n02x", "n03x", "n7x"));
  EXPECT_THAT(expand_host_range("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_host_range("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(expand_host_range("[0-1]"), ElementsAre("0", "1"));
  EXPECT_THAT(expand_host_range("n[00]"), ElementsAre("n00"));
}

TEST(HostRangeTest, TheLastBracketRunsFastest) {
  EXPECT_THAT(expand_host_range("r[0-1]n[1-2]"), ElementsAre("r0n1", "r0n2", "r1n1", "r1n2"));
}

TEST(HostRangeTest, SaysWhatIsWrong) {
  EXPECT_THAT(range_problem(""), HasSubstr("is empty"));
  EXPECT_THAT(range_problem("a[0-3"), HasSubstr("[ without a ]"));
  EXPECT_THAT(range_problem("a0-3]"), HasSubstr("] without a ["));
  EXPECT_THAT(range_problem("a[]"), HasSubstr("empty place"));
  EXPECT_THAT(range_problem("a[1,]"), HasSubstr("empty place"));
  EXPECT_THAT(range_problem("a[-3]"), HasSubstr("empty place"));
  EXPECT_THAT(range_problem("a[3-1]"), HasSubstr("backwards"));
  EXPECT_THAT(range_problem("a[x-z]"), HasSubstr("no number"));
  EXPECT_THAT(range_problem("a[1-2-3]"), HasSubstr("no number"));
  EXPECT_THAT(range_problem("a[[1]]"), HasSubstr("no number"));
  EXPECT_THAT(range_problem("a,b"), HasSubstr("comma"));
  EXPECT_THAT(range_problem("a[99999999999999999999]"), HasSubstr("too long"));
  EXPECT_THAT(range_problem(std::string(256, 'a')), HasSubstr("longer than 255"));
}

TEST(HostRangeTest, RefusesMoreNamesThanTheLimitWithoutMakingThem) {
  EXPECT_THAT(range_problem("a[1-100]"), "no error");
  EXPECT_THAT(range_problem("a[1-101]"), HasSubstr("at most 100"));
  EXPECT_THAT(range_problem("a[0-999999999999999999]"), HasSubstr("too many names"));
  EXPECT_THAT(range_problem("a[0-99][0-99][0-99][0-99][0-99][0-99][0-99][0-99][0-99][0-99][0-99]"),
              HasSubstr("too many"));
}

}  // namespace
}  // namespace dssync
