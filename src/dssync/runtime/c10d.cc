#include "dssync/runtime/c10d.h"

namespace dssync {

void GlooChannel::cut() {
  for (const auto& context : contexts_) context->closeConnections();
}

std::string plain_message(const std::string& what) {
  std::string line = what.substr(0, what.find('\n'));
  if (line.starts_with("[") && line.find("] ") != std::string::npos) line = line.substr(line.find("] ") + 2);
  return line;
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
