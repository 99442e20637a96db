#include "dssync/training/data/dataset.h"

#include <ATen/ATen.h>

namespace dssync {

Batch Dataset::range(std::int64_t first, std::int64_t last) const {
  return batch(at::arange(first, last, at::kLong), 0);
}

}  // namespace dssync
