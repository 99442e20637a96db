#include "text/name_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/topology/read.h"

namespace dssync::cli {
namespace {

using ::testing::ElementsAre;

TEST(NameListTest, FoldsRuns) {
  EXPECT_THAT(fold_names({"a0", "a1", "a2", "a3"}), ElementsAre("a[0-3]"));
  EXPECT_THAT(fold_names({"a0", "a1", "a7"}), ElementsAre("a[0-1,7]"));
  EXPECT_THAT(fold_names({"solo"}), ElementsAre("solo"));
}

TEST(NameListTest, FoldsSeveralNumbers) {
  EXPECT_THAT(fold_names({"r0h0", "r0h1", "r1h0", "r1h1"}), ElementsAre("r[0-1]h[0-1]"));
}

TEST(NameListTest, KeepsApartWhatIsNoGrid) {
  EXPECT_THAT(fold_names({"r0h0", "r0h1", "r1h0"}), ElementsAre("r0h[0-1]", "r1h0"));
  EXPECT_THAT(fold_names({"a0", "b0"}), ElementsAre("a0", "b0"));
}

TEST(NameListTest, KeepsPadding) {
  EXPECT_THAT(fold_names({"n08", "n09", "n10"}), ElementsAre("n[08-10]"));
  EXPECT_THAT(fold_names({"n9", "n10"}), ElementsAre("n[9-10]"));
  EXPECT_THAT(fold_names({"n9", "n010"}), ElementsAre("n[9,010]"));
}

TEST(NameListTest, TopologyFilesReadThePatternsBack) {
  const std::vector<std::string> names = {"n08", "n09", "n10", "n99", "n100", "n101"};
  const std::vector<std::string> folded = fold_names(names);
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(expand_host_range(folded.front()), names);
}

TEST(NameListTest, ListFitsItsColumns) {
  const Style style{.utf8 = true, .color = false};
  EXPECT_EQ(list_names({"alpha", "beta", "gamma"}, 40, style), "alpha, beta, gamma");
  EXPECT_EQ(list_names({"alpha", "beta", "gamma"}, 15, style), "alpha, beta, …");
  EXPECT_EQ(list_names({"alphabetical"}, 6, style), "alpha…");
}

}  // namespace
}  // namespace dssync::cli
