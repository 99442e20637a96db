#include "dssync/sync/gradient_buckets.h"

#include <optional>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

namespace dssync {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Place = GradientBuckets::Place;

// Four parameters of 2, 3, 4 and 5 floats.
std::vector<NamedTensor> four_parameters() {
  std::vector<NamedTensor> parameters;
  for (const std::int64_t size : {2, 3, 4, 5}) {
    parameters.push_back({std::to_string(size), at::zeros({size}).requires_grad_()});
  }
  return parameters;
}

class GradientBucketsTest : public ::testing::Test {
 protected:
  // Buckets of 40 bytes: 5 + 4 elements, then 3 + 2.
  void watch(Place place) {
    buckets_.emplace(parameters_, set_.flats(), make_buckets(set_.flats(), 40), place,
                     GradientBuckets::Listener{[this](const Bucket& bucket) { told_.push_back(bucket.parameters); },
                                               [this](std::size_t parameter) { late_.push_back(parameter); }});
  }

  // The gradient of a parameter is its number plus 1.
  void backward(const std::vector<std::size_t>& used) {
    at::Tensor loss = at::zeros({});
    for (const std::size_t index : used) {
      loss = loss + (parameters_[index].tensor * static_cast<double>(index + 1)).sum();
    }
    loss.backward();
  }

  std::vector<NamedTensor> parameters_ = four_parameters();
  TensorSet set_{parameters_, Storage::kOwned};
  std::optional<GradientBuckets> buckets_;
  std::vector<std::vector<std::size_t>> told_;
  std::vector<std::size_t> late_;
};

TEST_F(GradientBucketsTest, GoFromTheLastParameterToTheFirst) {
  const std::vector<Bucket> buckets = make_buckets(set_.flats(), 40);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].begin, 5);
  EXPECT_EQ(buckets[0].end, 14);
  EXPECT_THAT(buckets[0].parameters, ElementsAre(3, 2));
  EXPECT_EQ(buckets[1].begin, 0);
  EXPECT_EQ(buckets[1].end, 5);
  EXPECT_THAT(buckets[1].parameters, ElementsAre(1, 0));
  EXPECT_EQ(make_buckets(set_.flats(), 1).size(), 4U) << "a parameter is never cut";
}

// Middles from the end at 2.5, 7, 10.5 and 13 of 14 elements.
TEST_F(GradientBucketsTest, AreAboutEqualWhereTheirNumberIsGiven) {
  const std::vector<Bucket> halves = split(set_.flats(), 2);
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_THAT(halves[0].parameters, ElementsAre(3));
  EXPECT_EQ(halves[0].begin, 9);
  EXPECT_THAT(halves[1].parameters, ElementsAre(2, 1, 0));
  EXPECT_EQ(halves[1].begin, 0);
  EXPECT_EQ(halves[1].end, 9);
  EXPECT_EQ(split(set_.flats(), 1).size(), 1U);
  EXPECT_EQ(split(set_.flats(), 100).size(), 4U);
}

TEST_F(GradientBucketsTest, AreToldOfInOrderWhateverArrivesFirst) {
  watch(Place::kWhereTheyAre);
  buckets_->arm();
  backward({0, 1});
  EXPECT_THAT(told_, IsEmpty()) << "the first bucket is not complete";
  backward({2, 3});
  EXPECT_THAT(told_, ElementsAre(ElementsAre(3, 2), ElementsAre(1, 0)));
  EXPECT_THAT(late_, IsEmpty());
}

TEST_F(GradientBucketsTest, AreCompleteInTheEndWhereGradientsAreMissing) {
  watch(Place::kWhereTheyAre);
  buckets_->arm();
  backward({0, 2});
  buckets_->finish();
  EXPECT_THAT(told_, ElementsAre(ElementsAre(3, 2), ElementsAre(1, 0)));
  EXPECT_FALSE(parameters_[3].tensor.grad().defined());
  EXPECT_FALSE(buckets_->is_armed());
}

TEST_F(GradientBucketsTest, CountOnlyWhatArrivesWhileArmed) {
  watch(Place::kWhereTheyAre);
  backward({0, 1, 2, 3});
  EXPECT_THAT(told_, IsEmpty());
  buckets_->arm();
  buckets_->finish();
  EXPECT_EQ(told_.size(), 2U);
}

TEST_F(GradientBucketsTest, GradientsThatChangeAgainAreNamed) {
  watch(Place::kWhereTheyAre);
  buckets_->arm();
  backward({1, 2, 3});
  backward({3});
  EXPECT_THAT(late_, ElementsAre(3));
}

TEST_F(GradientBucketsTest, FlatGradientsAreWhatParametersHave) {
  watch(Place::kFlat);
  buckets_->arm();
  parameters_[2].tensor.mutable_grad() = at::Tensor();  // as optimizers do that drop gradients
  backward({0, 2});
  buckets_->finish();
  const at::Tensor& flat = buckets_->gradients().front().vector;
  EXPECT_TRUE(at::equal(flat, at::tensor({1., 1., 0., 0., 0., 3., 3., 3., 3., 0., 0., 0., 0., 0.}, at::kFloat)));
  flat.fill_(7);
  EXPECT_TRUE(at::equal(parameters_[3].tensor.grad(), at::full({5}, 7.0, at::kFloat)));
}

TEST_F(GradientBucketsTest, ParametersOutliveThem) {
  watch(Place::kFlat);
  buckets_->arm();
  buckets_.reset();
  backward({0, 1, 2, 3});
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace dssync
