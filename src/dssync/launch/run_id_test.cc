#include "dssync/launch/run_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(RunIdTest, NamesAre128BitsInHexAndDiffer) {
  const std::string name = make_run_name();
  EXPECT_EQ(name.size(), 32u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), std::string::npos) << name;
  EXPECT_NE(name, make_run_name());
}

TEST(RunIdTest, AnAttemptIsToldWhereThereWasAnEarlierOne) {
  EXPECT_EQ(to_text({"job7", 0}), "job7");
  EXPECT_EQ(to_text({"job7", 2}), "job7, attempt 2");
}

}  // namespace
}  // namespace dssync
