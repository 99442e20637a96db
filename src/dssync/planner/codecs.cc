#include "dssync/planner/codecs.h"

#include <algorithm>
#include <utility>

#include "dssync/base/index.h"

namespace dssync {

Codecs::Codecs(std::vector<Codec> by_level, double bytes_per_second)
    : by_level_(std::move(by_level)), bytes_per_second_(bytes_per_second) {
  while (by_level_.size() > 1 && by_level_.back() == by_level_[by_level_.size() - 2]) by_level_.pop_back();
  if (by_level_.size() == 1 && by_level_.front() == Codec::kFloat32) *this = {};
}

Codec Codecs::at(int level) const {
  return by_level_.empty() ? Codec::kFloat32 : by_level_[std::min(index(level), by_level_.size() - 1)];
}

}  // namespace dssync
