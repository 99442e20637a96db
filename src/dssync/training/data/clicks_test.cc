// Whether impressions are what they are said to be.
#include "dssync/training/data/clicks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/training/data/load_data.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

TEST(ClicksTest, DependOnTheSeedAlone) {
  const ClickOptions options{.train_examples = 100, .test_examples = 50, .seed = 3};
  const ClickSets first = make_clicks(options);
  const ClickSets again = make_clicks(options);
  EXPECT_TRUE(at::equal(first.train.rows, again.train.rows));
  EXPECT_TRUE(at::equal(first.train.clicks, again.train.clicks));
  EXPECT_TRUE(at::equal(first.test.clicks, again.test.clicks));
  EXPECT_FALSE(
      at::equal(first.train.rows, make_clicks({.train_examples = 100, .test_examples = 50, .seed = 4}).train.rows));
  EXPECT_FALSE(at::equal(first.train.rows.slice(0, 0, 50), first.test.rows));
}

TEST(ClicksTest, EveryFieldHasItsOwnRows) {
  const ClickSets sets = make_clicks({.train_examples = 2'000, .test_examples = 10, .rows = 80});
  EXPECT_EQ(sets.train.rows.sizes(), at::IntArrayRef({2'000, 8}));
  for (std::int64_t field = 0; field < 8; ++field) {
    const at::Tensor rows = sets.train.rows.select(1, field);
    EXPECT_EQ(rows.min().item<std::int64_t>(), 10 * field);
    EXPECT_EQ(rows.max().item<std::int64_t>(), 10 * field + 9);
  }
}

TEST(ClicksTest, AreAsFrequentAsTheirChances) {
  const ClickSets sets = make_clicks({.train_examples = 40'000, .test_examples = 10});
  const at::Tensor likely = sets.train.chances.gt(0.5);
  const auto share = [](const at::Tensor& values) { return values.mean().item<double>(); };
  EXPECT_NEAR(share(sets.train.clicks), share(sets.train.chances), 0.01);
  EXPECT_NEAR(share(sets.train.clicks.masked_select(likely)), share(sets.train.chances.masked_select(likely)), 0.02);
  EXPECT_GT(share(sets.train.clicks), 0.2);
  EXPECT_LT(share(sets.train.clicks), 0.5);
}

TEST(ClicksTest, AreADataSetLikeOthers) {
  const DataOptions options{.name = "clicks", .train_examples = 30, .test_examples = 20, .rows = 64};
  EXPECT_EQ(std::get<ClickShape>(shape_of(options)).rows, 64);
  const Datasets sets = load_data(options);
  EXPECT_EQ(sets.train->size(), 30);
  EXPECT_EQ(sets.test->size(), 20);
  const Batch batch = sets.train->batch(at::tensor({5, 2}, at::kLong), 0);
  EXPECT_EQ(batch.inputs.sizes(), at::IntArrayRef({2, 8}));
  EXPECT_EQ(batch.inputs.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(batch.inputs[1], sets.train->range(2, 3).inputs[0]));
}

TEST(ClicksTest, RefuseNumbersThatMakeNoSense) {
  EXPECT_THAT(message_of<InputError>([] { make_clicks({.rows = 100}); }),
              HasSubstr("100 rows; expected a multiple of 8"));
  EXPECT_THAT(message_of<InputError>([] { make_clicks({.train_examples = 0}); }), HasSubstr("0 training examples"));
}

}  // namespace
}  // namespace dssync
