#include "dssync/collective/operations/accumulate.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <ATen/ATen.h>

#include "dssync/collective/tuning.h"

namespace dssync {

void accumulate(const at::Tensor& sum, const at::Tensor& rows, Rows kind, int divisor) {
  const std::int64_t length = sum.is_cpu() ? tuning::kBlockElements : sum.numel();
  for (std::int64_t begin = 0; begin < sum.numel(); begin += length) {
    const std::int64_t end = std::min(begin + length, sum.numel());
    at::Tensor block = sum.slice(0, begin, end);
    const at::Tensor incoming = rows.slice(1, begin, end);
    if (kind == Rows::kAllParts) {
      at::sum_out(block, incoming, 0);
    } else {
      block.add_(incoming[0]);
    }
    divide(block, divisor);
  }
}

void divide(const at::Tensor& sum, int divisor) {
  if (divisor == 1) return;
  if (std::has_single_bit(static_cast<unsigned>(divisor))) {
    sum.mul_(1.0 / divisor);
  } else {
    sum.div_(divisor);
  }
}

}  // namespace dssync
