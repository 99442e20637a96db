#include "dssync/base/name_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;

TEST(NamePatternTest, FoldsRuns) {
  EXPECT_THAT(fold_names({"a0", "a1", "a2", "a3"}), ElementsAre("a[0-3]"));
  EXPECT_THAT(fold_names({"a0", "a1", "a7"}), ElementsAre("a[0-1,7]"));
  EXPECT_THAT(fold_names({"solo"}), ElementsAre("solo"));
}

TEST(NamePatternTest, FoldsSeveralNumbers) {
  EXPECT_THAT(fold_names({"r0h0", "r0h1", "r1h0", "r1h1"}), ElementsAre("r[0-1]h[0-1]"));
}

TEST(NamePatternTest, KeepsApartWhatIsNoGrid) {
  EXPECT_THAT(fold_names({"r0h0", "r0h1", "r1h0"}), ElementsAre("r0h[0-1]", "r1h0"));
  EXPECT_THAT(fold_names({"a0", "b0"}), ElementsAre("a0", "b0"));
}

TEST(NamePatternTest, KeepsPadding) {
  EXPECT_THAT(fold_names({"n08", "n09", "n10"}), ElementsAre("n[08-10]"));
  EXPECT_THAT(fold_names({"n9", "n10"}), ElementsAre("n[9-10]"));
  EXPECT_THAT(fold_names({"n9", "n010"}), ElementsAre("n[9,010]"));
}

}  // namespace
}  // namespace dssync
