#include "dssync/collective/outcome_book.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace dssync {
namespace {

using Until = Engine::Until;

std::exception_ptr some_error() { return std::make_exception_ptr(std::runtime_error("some error")); }

TEST(OutcomeBookTest, IsSettledWhenAllHaveEnded) {
  OutcomeBook book;
  EXPECT_TRUE(book.is_settled(Until::kAllEnded));
  book.add(0);
  book.add(1);
  book.set_ended(1);
  EXPECT_FALSE(book.is_settled(Until::kAllEnded));
  EXPECT_FALSE(book.is_settled(Until::kFirstVoid));
  book.set_ended(0);
  EXPECT_TRUE(book.is_settled(Until::kAllEnded));
  const std::vector<Outcome> outcomes = book.tell();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].average, 0);
  EXPECT_FALSE(outcomes[0].is_void());
  EXPECT_TRUE(book.tell().empty());
}

TEST(OutcomeBookTest, CanBeSettledForSome) {
  OutcomeBook book;
  for (const AverageId average : {0, 1, 2}) book.add(average);
  book.set_ended(1);
  const std::vector<AverageId> some = {1};
  EXPECT_TRUE(book.is_settled(Until::kAllEnded, &some));
  EXPECT_EQ(book.tell().size(), 1U);
  EXPECT_TRUE(book.is_settled(Until::kAllEnded, &some)) << "it was told of";
  const std::vector<AverageId> others = {0, 1};
  EXPECT_FALSE(book.is_settled(Until::kAllEnded, &others));
  book.set_void(2, 0);
  book.explain(0, some_error());
  EXPECT_TRUE(book.is_settled(Until::kFirstVoid, &others)) << "whoever gives up does so for any of them";
}

TEST(OutcomeBookTest, AVoidAverageIsToldWhenItsCauseIsKnown) {
  OutcomeBook book;
  book.add(0);
  book.set_void(0, 3);
  book.set_void(0, 4);  // the first cause counts
  book.set_ended(0);
  book.explain(4, some_error());
  EXPECT_FALSE(book.is_settled(Until::kFirstVoid));
  EXPECT_TRUE(book.tell().empty());
  EXPECT_TRUE(book.all_ended());
  book.explain(3, some_error());
  EXPECT_TRUE(book.is_settled(Until::kAllEnded));
  ASSERT_EQ(book.tell().size(), 1U);
}

TEST(OutcomeBookTest, AVoidAverageCanBeToldBeforeItHasEnded) {
  OutcomeBook book;
  book.add(0);
  book.add(1);
  book.set_void(1, 0);
  book.explain(0, some_error());
  EXPECT_TRUE(book.is_settled(Until::kFirstVoid));
  EXPECT_FALSE(book.is_settled(Until::kAllEnded));
  ASSERT_EQ(book.tell().size(), 1U);
  EXPECT_FALSE(book.is_settled(Until::kFirstVoid)) << "it has been told";
  book.set_ended(0);
  EXPECT_FALSE(book.all_ended());
  book.set_ended(1);
  EXPECT_TRUE(book.all_ended());
  EXPECT_EQ(book.tell().size(), 1U);
}

}  // namespace
}  // namespace dssync
