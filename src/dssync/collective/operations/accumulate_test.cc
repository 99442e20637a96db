#include "dssync/collective/operations/accumulate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace dssync {
namespace {

TEST(DivideTest, LeavesTheBitsOfADivision) {
  const at::Tensor sum = at::cat({at::sin(at::arange(1000, at::kFloat)), at::tensor({1e-45, 3e-39, 0.0, -0.0, 3e38})});
  for (const int divisor : {1, 2, 3, 4, 6, 8, 64, 100}) {
    const at::Tensor divided = sum.to(at::kFloat).clone();
    divide(divided, divisor);
    EXPECT_TRUE(divided.equal(sum.to(at::kFloat) / divisor)) << divisor;
  }
}

TEST(AccumulateTest, AddsUpAndDividesInBlocks) {
  const at::Tensor rows = at::arange(600'000, at::kFloat).view({3, 200'000}).remainder(1000);
  const at::Tensor all = at::empty({200'000});
  accumulate(all, rows, Rows::kAllParts, 3);
  EXPECT_TRUE(at::allclose(all, rows.mean(0), 1e-6, 0));
  const at::Tensor own = rows[0].clone();
  accumulate(own, rows.slice(0, 1, 2), Rows::kOtherParts, 2);
  EXPECT_TRUE(own.equal((rows[0] + rows[1]) / 2));
}

}  // namespace
}  // namespace dssync
