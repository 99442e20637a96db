#include "dssync/comm/loss_record.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dssync {

std::string Loss::text() const {
  return rank == kStore ? "lost the store: " + description : fmt::format("rank {} {}", rank, description);
}

bool LossRecord::add(const Loss& loss) {
  const std::lock_guard lock(mutex_);
  for (const Loss& known : losses_) {
    if (known.rank == loss.rank) return false;
  }
  losses_.push_back(loss);
  return true;
}

bool LossRecord::has(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(losses_.begin(), losses_.end(), [rank](const Loss& loss) { return loss.rank == rank; });
}

bool LossRecord::is_given_up() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(losses_.begin(), losses_.end(),
                     [this](const Loss& loss) { return loss.rank == self_ && loss.told_by != self_; });
}

std::vector<Loss> LossRecord::after(std::size_t known) const {
  const std::lock_guard lock(mutex_);
  return {losses_.begin() + static_cast<std::ptrdiff_t>(std::min(known, losses_.size())), losses_.end()};
}

std::string LossRecord::text() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> parts;
  for (const Loss& loss : losses_) {
    if (loss.rank == Loss::kStore) continue;  // whoever needs it next finds out
    if (loss.rank != self_) {
      parts.push_back(loss.text());
    } else if (loss.told_by != self_) {
      parts.insert(parts.begin(),
                   fmt::format("the others have given this worker up: rank {} {}", self_, loss.description));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace dssync
