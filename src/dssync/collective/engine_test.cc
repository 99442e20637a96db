// Order, failure and delay of averages, with channels in memory. One thread owns the engines of all members; while it
// waits for one of them, the others are driven in the background.
#include "dssync/collective/engine.h"

#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/comm/c10d/cuttable_group.h"
#include "dssync/comm/fake_channel.h"
#include "dssync/comm/testing.h"

namespace dssync {
namespace {

using ::testing::ElementsAre;
using testing::FakeGroup;
using testing::FakeOperation;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using SharedChain = std::shared_ptr<const Chain>;

std::exception_ptr broken_cable() { return std::make_exception_ptr(std::runtime_error("a broken cable")); }

std::string message_of_cause(const Outcome& outcome) {
  return testing::message_of<PeerError>([&] { std::rethrow_exception(outcome.cause); });
}

std::vector<bool> are_void(const std::vector<Outcome>& outcomes) {
  std::vector<bool> result;
  for (const Outcome& outcome : outcomes) result.push_back(outcome.is_void());
  return result;
}

// One of two workers. The average of what both bring in is always `kMean`.
class Member {
 public:
  static constexpr double kMean = 1.5;

  explicit Member(int number)
      : number_(number),
        engine_(
            [this](const std::string& doing, const std::vector<Rank>& /*members*/, const std::string& what) {
              const std::lock_guard lock(mutex_);
              ++explanations_;
              return std::make_exception_ptr(PeerError(fmt::format("{}: {}", doing, what)));
            },
            nullptr) {}

  // Both exchange all they have.
  SharedChain pair(const FakeGroup& group) const { return pair(group.channel(number_)); }
  SharedChain pair(const Channel& channel) const { return chain({{Stage::Kind::kAllReduce, channel}}); }

  // Each sums up one half in one group, and hands it out in another.
  SharedChain scatter_and_gather(const FakeGroup& first, const FakeGroup& second) const {
    return chain(
        {{Stage::Kind::kReduceScatter, first.channel(number_)}, {Stage::Kind::kAllGather, second.channel(number_)}});
  }

  at::Tensor average(const SharedChain& chain, std::int64_t size = 4) {
    at::Tensor vector = own(size);
    engine_.average(vector, chain, 0, Seconds(0));
    return vector;
  }

  at::Tensor own(std::int64_t size) const { return at::full({size}, number_ + 1.0); }
  Engine& engine() { return engine_; }

  int explanations() {
    const std::lock_guard lock(mutex_);
    return explanations_;
  }

 private:
  SharedChain chain(const std::vector<std::pair<Stage::Kind, Channel>>& stages) const {
    Chain chain;
    chain.group_size = 2;
    for (const auto& [kind, channel] : stages) {
      const bool is_whole = kind == Stage::Kind::kAllReduce;
      const std::vector<double> bounds = is_whole ? std::vector<double>{0, 1} : std::vector<double>{0, 0.5, 1};
      chain.phases.push_back(
          {{.kind = kind, .members = {0, 1}, .bounds = bounds, .index = number_, .channel = channel}});
      if (kind != Stage::Kind::kAllGather) chain.reduced_after = chain.phases.size();
    }
    return std::make_shared<const Chain>(std::move(chain));
  }

  const int number_;
  std::mutex mutex_;
  int explanations_ = 0;
  Engine engine_;  // last: it uses the others
};

class FakeEngineTest : public ::testing::Test {
 protected:
  std::array<Member, 2> members_{Member(0), Member(1)};
};

bool has_the_mean(const at::Tensor& vector) { return at::equal(vector, at::full_like(vector, Member::kMean)); }

TEST_F(FakeEngineTest, MembersKeepTheSameOrderWhateverEndsFirst) {
  FakeGroup group(2);
  group.hold(0, 0);
  group.hold(1, 1);
  group.hold(1, 2);
  std::vector<at::Tensor> vectors;
  for (Member& member : members_) {
    const SharedChain chain = member.pair(group);
    for (int size = 1; size <= 8; ++size) vectors.push_back(member.average(chain, size));
  }
  // They run up to four at a time, so that the others go past those that are held up.
  for (const int member : {0, 1}) group.await_end(member, 7);
  group.release(1, 2);
  group.release(1, 1);
  group.release(0, 0);
  for (Member& member : members_) require_done(member.engine().wait());
  std::vector<FakeOperation> expected;
  for (int size = 1; size <= 8; ++size) expected.push_back({"all-to-all", size});
  for (const int member : {0, 1}) EXPECT_EQ(group.started(member), expected);
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

TEST_F(FakeEngineTest, ADelayedOperationHoldsBackOnlyWhatFollowsFromIt) {
  FakeGroup first(2);
  const FakeGroup second(2);
  const FakeGroup other(2);
  for (const int member : {0, 1}) first.hold(member, 0);
  std::vector<at::Tensor> vectors;
  for (Member& member : members_) {
    vectors.push_back(member.average(member.scatter_and_gather(first, second)));
    vectors.push_back(member.average(member.pair(other)));
  }
  for (const int member : {0, 1}) other.await_end(member, 0);
  for (const int member : {0, 1}) EXPECT_THAT(second.started(member), IsEmpty());
  for (const int member : {0, 1}) first.release(member, 0);
  for (Member& member : members_) require_done(member.engine().wait());
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

TEST_F(FakeEngineTest, AFailedChannelVoidsItsAveragesAndTheOthersAreDone) {
  FakeGroup failing(2);
  const FakeGroup whole(2);
  failing.fail(0, 0, broken_cable());
  std::vector<at::Tensor> vectors;
  for (Member& member : members_) {
    const SharedChain bad = member.pair(failing);
    const SharedChain good = member.pair(whole);
    member.average(bad);
    vectors.push_back(member.average(good));
    member.average(bad);
    vectors.push_back(member.average(good));
  }
  EXPECT_THAT(are_void(members_[0].engine().wait()), ElementsAre(true, false, true, false));
  const std::vector<Outcome> others = members_[1].engine().wait();
  EXPECT_TRUE(others[0].is_void()) << "learns of it by the cut";
  EXPECT_FALSE(others[1].is_void());
  EXPECT_FALSE(others[3].is_void());
  EXPECT_TRUE(failing.is_cut());
  EXPECT_FALSE(whole.is_cut());
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

// As a World does that hears of a lost worker. Gloo lets some sends to one that is gone wait for their timeout.
TEST_F(FakeEngineTest, ACutVoidsWhatNeedsTheChannelAlthoughC10dGoesOnWaiting) {
  FakeGroup silent(2);
  silent.stick(0, 0);
  Member& member = members_[0];
  const Channel channel = make_cuttable(silent.channel(0));
  const SharedChain chain = member.pair(channel);
  member.average(chain);
  cut(*channel);
  EXPECT_THAT(are_void(member.engine().wait()), ElementsAre(true));
  member.average(chain);
  EXPECT_THAT(are_void(member.engine().wait()), ElementsAre(true)) << "later, too";
}

TEST_F(FakeEngineTest, TheEngineGoesOnAfterAFailure) {
  FakeGroup failing(2);
  const FakeGroup whole(2);
  failing.fail(1, 0, broken_cable());
  std::vector<SharedChain> bad;
  for (Member& member : members_) {
    bad.push_back(member.pair(failing));
    member.average(bad.back());
  }
  for (Member& member : members_) EXPECT_THAT(are_void(member.engine().wait()), ElementsAre(true));
  std::vector<at::Tensor> vectors;
  for (std::size_t index = 0; index < 2; ++index) {
    vectors.push_back(members_[index].average(members_[index].pair(whole)));
    members_[index].average(bad[index]);
  }
  for (Member& member : members_) {
    const std::vector<Outcome> outcomes = member.engine().wait();
    EXPECT_THAT(are_void(outcomes), ElementsAre(false, true));
    EXPECT_EQ(outcomes[0].average, 1);
    EXPECT_THAT(member.engine().wait(), IsEmpty()) << "every outcome is told once";
    EXPECT_EQ(member.explanations(), 1) << "one failure, one explanation";
  }
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

// The second group would otherwise match what follows with the average that is missing.
TEST_F(FakeEngineTest, AFailureBreaksTheChannelsThatTheAverageHadYetToUse) {
  FakeGroup first(2);
  const FakeGroup second(2);
  first.fail(0, 0, broken_cable());
  members_[0].average(members_[0].scatter_and_gather(first, second));
  EXPECT_THAT(are_void(members_[0].engine().wait()), ElementsAre(true));
  EXPECT_TRUE(first.is_cut());
  EXPECT_TRUE(second.is_cut());
}

TEST_F(FakeEngineTest, AVoidOutcomeNamesItsCause) {
  FakeGroup group(2);
  group.fail(0, 0, broken_cable());
  members_[0].average(members_[0].pair(group));
  const std::vector<Outcome> outcomes = members_[0].engine().wait();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(message_of_cause(outcomes[0]), "averaging with ranks 0, 1: a broken cable");
  EXPECT_THROW(require_done(outcomes), PeerError);
}

TEST_F(FakeEngineTest, AFailureOfThisWorkerIsNotBlamedOnAPeer) {
  FakeGroup refusing(2);
  FakeGroup failing(2);
  const auto no_memory = std::make_exception_ptr(std::bad_alloc());
  refusing.refuse(0, 0, no_memory);  // as where there is no memory to receive into
  failing.fail(0, 0, no_memory);     // as where c10d has none
  for (const FakeGroup* group : {&refusing, &failing}) {
    for (Member& member : members_) member.average(member.pair(*group));
  }
  const std::vector<Outcome> outcomes = members_[0].engine().wait();
  ASSERT_EQ(outcomes.size(), 2U);
  for (const Outcome& outcome : outcomes) EXPECT_THROW(std::rethrow_exception(outcome.cause), std::bad_alloc);
  EXPECT_EQ(members_[0].explanations(), 0);
  for (const Outcome& outcome : members_[1].engine().wait()) {
    EXPECT_THAT(message_of_cause(outcome), HasSubstr("the connection was cut"));
  }
}

TEST_F(FakeEngineTest, WhoeverGivesUpNeedNotWaitForTheRest) {
  FakeGroup failing(2);
  FakeGroup slow(2);
  failing.fail(0, 0, broken_cable());
  for (const int member : {0, 1}) slow.hold(member, 0);
  for (Member& member : members_) {
    member.average(member.pair(slow));
    member.average(member.pair(failing));
  }
  for (Member& member : members_) {
    const std::vector<Outcome> outcomes = member.engine().wait(Engine::Until::kFirstVoid);
    ASSERT_EQ(outcomes.size(), 1U);
    EXPECT_EQ(outcomes[0].average, 1);
    EXPECT_TRUE(outcomes[0].is_void());
  }
  for (const int member : {0, 1}) slow.release(member, 0);
  for (Member& member : members_) EXPECT_THAT(are_void(member.engine().wait()), ElementsAre(false));
}

TEST_F(FakeEngineTest, WhoeverNeedsOneAverageDoesNotWaitForOthers) {
  FakeGroup slow(2);
  FakeGroup fast(2);
  for (const int member : {0, 1}) slow.hold(member, 0);
  std::vector<at::Tensor> vectors;
  for (Member& member : members_) {
    vectors.push_back(member.average(member.pair(slow)));
    vectors.push_back(member.average(member.pair(fast)));
  }
  for (Member& member : members_) {
    EXPECT_THAT(are_void(member.engine().wait({1}, Engine::Until::kFirstVoid)), ElementsAre(false));
    EXPECT_THAT(member.engine().wait({1}, Engine::Until::kFirstVoid), IsEmpty()) << "it has been told of";
  }
  for (const int member : {0, 1}) slow.release(member, 0);
  for (Member& member : members_) {
    EXPECT_THAT(are_void(member.engine().wait()), ElementsAre(false));
  }
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

TEST_F(FakeEngineTest, SmallSlicesTravelAsOne) {
  FakeGroup group(2);
  std::vector<std::vector<at::Tensor>> slices;
  for (Member& member : members_) {
    slices.push_back({member.own(3), member.own(0), member.own(5)});
    member.engine().average(slices.back(), member.pair(group), 0, Seconds(0));
  }
  for (Member& member : members_) require_done(member.engine().wait());
  EXPECT_THAT(group.started(0), ElementsAre(FakeOperation{"all-to-all", 8}));
  for (const std::vector<at::Tensor>& of_member : slices) {
    for (const at::Tensor& slice : of_member) EXPECT_TRUE(has_the_mean(slice));
  }
}

TEST_F(FakeEngineTest, APairLeavesTheSumOfLongSlicesToC10d) {
  FakeGroup group(2);
  std::vector<at::Tensor> vectors;
  for (Member& member : members_) {
    const SharedChain chain = member.pair(group);
    for (const std::int64_t size : {524287, 524288}) vectors.push_back(member.average(chain, size));  // up to 2 MiB
  }
  for (Member& member : members_) require_done(member.engine().wait());
  EXPECT_THAT(group.started(0), ElementsAre(FakeOperation{"all-to-all", 524287}, FakeOperation{"all-reduce", 524288}));
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

TEST_F(FakeEngineTest, NothingToAverageIsDone) {
  const FakeGroup group(2);
  Engine& engine = members_[0].engine();
  const AverageId alone = engine.average(at::ones({4}), std::make_shared<const Chain>(), 0, Seconds(0));
  const AverageId empty = engine.average(at::ones({0}), members_[0].pair(group), 0, Seconds(0));
  const std::vector<Outcome> outcomes = engine.wait();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].average, alone);
  EXPECT_EQ(outcomes[1].average, empty);
  EXPECT_THAT(are_void(outcomes), ElementsAre(false, false));
}

TEST(EngineDestructorTest, EndsWithFailuresThatNobodyAskedFor) {
  FakeGroup failing(2);
  const FakeGroup whole(2);
  failing.fail(0, 0, broken_cable());
  std::vector<at::Tensor> vectors;
  {
    std::array<Member, 2> members{Member(0), Member(1)};
    for (Member& member : members) {
      member.average(member.pair(failing));
      vectors.push_back(member.average(member.pair(whole)));
    }
  }
  EXPECT_TRUE(failing.is_cut());
  for (const at::Tensor& vector : vectors) EXPECT_TRUE(has_the_mean(vector));
}

}  // namespace
}  // namespace dssync
