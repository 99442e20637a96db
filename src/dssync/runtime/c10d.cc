#include "dssync/runtime/c10d.h"

namespace dssync {

void GlooChannel::cut() {
  for (const auto& context : contexts_) context->closeConnections();
}

bool can_sum(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
      return true;
    case at::kBFloat16:
      return TORCH_VERSION_MAJOR >= 2;
    default:
      return false;
  }
}

}  // namespace dssync
