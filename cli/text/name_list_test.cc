#include "text/name_list.h"

#include <gtest/gtest.h>

#include "dssync/base/name_pattern.h"
#include "dssync/topology/read.h"

namespace dssync::cli {
namespace {

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
