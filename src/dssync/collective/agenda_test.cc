#include "dssync/collective/agenda.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using OperationId = Agenda::OperationId;
using Ending = Agenda::Ending;

class AgendaTest : public ::testing::Test {
 protected:
  // An item with one operation in each of these channels, one after the other.
  Agenda::ItemId add(const std::vector<int>& channels, double urgency = 0, std::size_t slowest = 0, int at_once = 1) {
    Agenda::Course course{{}, urgency, slowest};
    for (const int channel : channels) course.phases.push_back({{key(channel), at_once}});
    return agenda_.add(std::move(course));
  }

  Agenda::ChannelKey key(int channel) const { return &channels_[static_cast<std::size_t>(channel)]; }

  // All that may start now.
  std::vector<OperationId> start() {
    std::vector<OperationId> started;
    while (const std::optional<OperationId> next = agenda_.next()) started.push_back(*next);
    return started;
  }

  std::vector<Agenda::ItemId> void_items() {
    std::vector<Agenda::ItemId> items;
    for (const auto& [item, cause] : agenda_.take_void()) items.push_back(item);
    return items;
  }

  std::vector<int> broken_channels() {
    std::vector<int> channels;
    for (const auto& [channel, cause] : agenda_.take_broken()) {
      channels.push_back(static_cast<int>(static_cast<const char*>(channel) - channels_.data()));
    }
    return channels;
  }

  Agenda agenda_;

 private:
  std::array<char, 8> channels_{};
};

TEST(MostAtOnceTest, FillsTheGapBetweenOperations) {
  EXPECT_EQ(most_at_once(Seconds(10)), 2);
  EXPECT_EQ(most_at_once(Seconds(0.06)), 2);
  EXPECT_EQ(most_at_once(Seconds(0.03)), 3);
  EXPECT_EQ(most_at_once(Seconds(0)), 4);
}

TEST_F(AgendaTest, OperationsOfAChannelFollowTheOrderOfTheirItems) {
  add({0});
  add({0});
  add({1});
  EXPECT_THAT(start(), UnorderedElementsAre(OperationId{0, 0, 0}, OperationId{2, 0, 0}));
  agenda_.done({2, 0, 0});
  EXPECT_THAT(start(), IsEmpty());
  agenda_.done({0, 0, 0});
  EXPECT_THAT(start(), ElementsAre(OperationId{1, 0, 0}));
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{2, false}, Ending{0, false}));
}

TEST_F(AgendaTest, SeveralRunAtOnceWhereTheyMay) {
  for (int item = 0; item < 4; ++item) add({0}, 0, 0, 3);
  EXPECT_EQ(start().size(), 3U);
  agenda_.done({1, 0, 0});
  EXPECT_THAT(start(), ElementsAre(OperationId{3, 0, 0}));
}

// The second item could start in channel 1, but the first comes before it there, on every member.
TEST_F(AgendaTest, APlaceInTheOrderIsKeptForAPhaseThatIsNotReady) {
  add({0, 1});
  add({1});
  EXPECT_THAT(start(), ElementsAre(OperationId{0, 0, 0}));
  agenda_.done({0, 0, 0});
  EXPECT_THAT(start(), ElementsAre(OperationId{0, 1, 0}));
  agenda_.done({0, 1, 0});
  EXPECT_THAT(start(), ElementsAre(OperationId{1, 0, 0}));
}

TEST_F(AgendaTest, APhaseStartsWhenAllOperationsOfTheOneBeforeAreDone) {
  agenda_.add({{{{key(0)}, {key(1)}}, {}, {{key(2)}}}});
  EXPECT_EQ(start().size(), 2U);
  agenda_.done({0, 0, 1});
  EXPECT_THAT(start(), IsEmpty());
  agenda_.done({0, 0, 0});
  EXPECT_THAT(start(), ElementsAre(OperationId{0, 2, 0}));
  agenda_.done({0, 2, 0});
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{0, false}));
}

TEST_F(AgendaTest, AnItemWithNothingToDoIsDone) {
  agenda_.add({{{}, {}}});
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{0, false}));
}

TEST_F(AgendaTest, WhatIsLessUrgentWaitsWhileTheSlowestPhaseOfAnotherRunsDry) {
  const double urgent = 2;
  add({0, 1}, urgent, 1);
  add({2}, 1);
  EXPECT_THAT(start(), ElementsAre(OperationId{0, 0, 0})) << "its slowest phase has nothing to do yet";
  agenda_.done({0, 0, 0});
  EXPECT_THAT(start(), UnorderedElementsAre(OperationId{0, 1, 0}, OperationId{1, 0, 0}));
}

TEST_F(AgendaTest, AVoidItemHoldsNobodyBack) {
  add({0, 1}, 2, 1);
  add({2}, 1);
  EXPECT_EQ(start().size(), 1U);
  agenda_.fail({0, 0, 0}, 5);
  EXPECT_THAT(start(), ElementsAre(OperationId{1, 0, 0}));
}

TEST_F(AgendaTest, AFailureReachesAllWhoNeedTheChannelAndNobodyElse) {
  add({0});
  add({0});
  add({1});
  start();
  agenda_.fail({0, 0, 0}, 7);
  EXPECT_THAT(void_items(), UnorderedElementsAre(0, 1));
  EXPECT_THAT(broken_channels(), ElementsAre(0));
  EXPECT_THAT(agenda_.take_ended(), UnorderedElementsAre(Ending{0, true}, Ending{1, true}));
  agenda_.done({2, 0, 0});
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{2, false}));
}

// Item 0 will never start its operation in channel 1, so nobody can tell any more which ones there belong together.
TEST_F(AgendaTest, AFailureSpreadsToTheChannelsThatAVoidItemStillHadToUse) {
  add({0, 1});
  add({1, 2});
  add({2});
  add({3});
  start();
  agenda_.fail({0, 0, 0}, 7);
  EXPECT_THAT(void_items(), UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(broken_channels(), UnorderedElementsAre(0, 1, 2));
}

// Items that are through with a channel before it breaks are none of its business.
TEST_F(AgendaTest, WhatIsThroughWithTheChannelGoesOn) {
  add({0, 1});
  add({0});
  start();
  agenda_.done({0, 0, 0});
  start();
  agenda_.fail({1, 0, 0}, 7);
  EXPECT_THAT(void_items(), ElementsAre(1));
  agenda_.done({0, 1, 0});
  EXPECT_THAT(agenda_.take_ended(), UnorderedElementsAre(Ending{0, false}, Ending{1, true}));
}

TEST_F(AgendaTest, AVoidItemEndsWhenNothingOfItRunsAnyMore) {
  agenda_.add({{{{key(0)}, {key(1)}}}});
  add({1});
  start();
  agenda_.fail({0, 0, 0}, 7);
  EXPECT_THAT(void_items(), ElementsAre(0));
  EXPECT_THAT(broken_channels(), ElementsAre(0)) << "its operation in channel 1 is under way, in its place";
  EXPECT_THAT(agenda_.take_ended(), IsEmpty());
  agenda_.done({0, 0, 1});
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{0, true}));
  EXPECT_THAT(start(), ElementsAre(OperationId{1, 0, 0}));
}

TEST_F(AgendaTest, AVoidItemCanBreakAnotherChannel) {
  agenda_.add({{{{key(0)}, {key(1)}}}});
  add({1});
  start();
  agenda_.fail({0, 0, 0}, 7);
  EXPECT_FALSE(agenda_.is_broken({0, 0, 1}));
  agenda_.fail({0, 0, 1}, 8);
  EXPECT_THAT(agenda_.take_void(),
              ElementsAre(Agenda::Caused<Agenda::ItemId>{0, 7}, Agenda::Caused<Agenda::ItemId>{1, 8}));
  EXPECT_THAT(agenda_.take_ended(), UnorderedElementsAre(Ending{0, true}, Ending{1, true}));
}

TEST_F(AgendaTest, WhatOthersAreInFailsQuietlyOnceTheChannelIsBroken) {
  add({0}, 0, 0, 2);
  add({0}, 0, 0, 2);
  start();
  agenda_.fail({0, 0, 0}, 7);
  EXPECT_TRUE(agenda_.is_void(1));
  EXPECT_TRUE(agenda_.is_broken({1, 0, 0}));
  agenda_.done({1, 0, 0});
  EXPECT_THAT(agenda_.take_ended(), UnorderedElementsAre(Ending{0, true}, Ending{1, true}));
}

TEST_F(AgendaTest, AnItemThatIsDroppedBreaksOnlyWhatItHadYetToUse) {
  add({0, 1});
  add({0});
  start();
  agenda_.drop({0, 0, 0}, 7);
  EXPECT_THAT(void_items(), ElementsAre(0));
  EXPECT_THAT(broken_channels(), ElementsAre(1));
  EXPECT_THAT(start(), ElementsAre(OperationId{1, 0, 0}));
}

TEST_F(AgendaTest, NewItemsInABrokenChannelAreVoidForTheSameCause) {
  add({0});
  start();
  agenda_.fail({0, 0, 0}, 7);
  agenda_.take_void();
  agenda_.take_ended();
  add({1, 0});
  add({2});
  EXPECT_THAT(agenda_.take_void(), ElementsAre(Agenda::Caused<Agenda::ItemId>{1, 7}));
  EXPECT_THAT(agenda_.take_ended(), ElementsAre(Ending{1, true}));
  EXPECT_THAT(broken_channels(), ElementsAre(0, 1)) << "others wait for its operation in channel 1";
  EXPECT_THAT(start(), ElementsAre(OperationId{2, 0, 0}));
  agenda_.forget(key(0));
  add({0});
  EXPECT_THAT(start(), ElementsAre(OperationId{3, 0, 0}));
}

}  // namespace
}  // namespace dssync
