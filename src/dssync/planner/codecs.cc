#include "dssync/planner/codecs.h"

#include <algorithm>
#include <utility>

#include "dssync/base/index.h"

namespace dssync {

Codecs::Codecs(std::vector<Codec> by_level) : by_level_(std::move(by_level)) {
  while (by_level_.size() > 1 && by_level_.back() == by_level_[by_level_.size() - 2]) by_level_.pop_back();
  if (by_level_.size() == 1 && by_level_.front() == Codec::kFloat32) by_level_.clear();
}

Codec Codecs::at(int level) const {
  return by_level_.empty() ? Codec::kFloat32 : by_level_[std::min(index(level), by_level_.size() - 1)];
}

}  // namespace dssync
