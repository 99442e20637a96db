// The sums of reductions. Thread-safe for different tensors.
#pragma once

#include <ATen/core/Tensor.h>

namespace dssync {

// What `rows`, one for each part, have to do with the sum.
enum class Rows {
  kAllParts,    // they are all its parts
  kOtherParts,  // one row, which is added to what `sum` holds
};

// Adds up the rows and divides the sum. On a CPU by blocks that stay in its cache.
// REQUIRES: rows is a matrix with as many columns as `sum` has elements.
void accumulate(const at::Tensor& sum, const at::Tensor& rows, Rows kind, int divisor);

// Divides a sum in place. By a power of two it multiplies, which gives the same bits.
void divide(const at::Tensor& sum, int divisor);

}  // namespace dssync
