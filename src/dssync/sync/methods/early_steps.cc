#include "dssync/sync/methods/early_steps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

Error too_late(const std::string& what) {
  return Error(
      fmt::format("{} after the optimizer's step was made in the backward pass, because none of the first iterations "
                  "needed all gradients before it; use overlap none or combine",
                  what));
}

}  // namespace

EarlySteps::EarlySteps(const Replica& replica, const std::vector<Flat>& layout, const std::vector<Bucket>& buckets,
                       MakeStep make_step)
    : replica_(replica),
      make_step_(std::move(make_step)),
      seen_(replica.parameters.size()),
      has_gradient_(replica.parameters.size()),
      gradients_(replica.parameters, layout, buckets, GradientBuckets::Place::kWhereTheyAre,
                 {[this](const Bucket& bucket) { on_complete(bucket); },
                  [this](std::size_t parameter) { on_late(parameter); }}) {}

void EarlySteps::begin(bool is_allowed) {
  steps_ = is_allowed && is_agreed_ && replica_.step;
  is_checked_ = false;
  is_clean_ = false;
  is_in_backward_ = true;
  next_ = 0;
  gradients_.arm();
}

void EarlySteps::finish_backward() {
  is_in_backward_ = false;
  gradients_.finish();
}

EarlySteps::Seen EarlySteps::look_at(std::size_t parameter) const {
  const at::Tensor& gradient = replica_.parameters[parameter].tensor.grad();
  if (!gradient.defined()) return {};
  return {gradient.unsafeGetTensorImpl(), static_cast<std::int64_t>(gradient._version())};
}

void EarlySteps::on_complete(const Bucket& bucket) {
  if (next_ == 0) is_clean_ = is_in_backward_;
  for (const std::size_t parameter : bucket.parameters) {
    seen_[parameter] = look_at(parameter);
    has_gradient_[parameter] = seen_[parameter].tensor != nullptr;
  }
  if (steps_) make_step_(next_);
  ++next_;
}

void EarlySteps::on_late(std::size_t parameter) {
  is_clean_ = false;
  if (steps_) throw too_late(fmt::format("the gradient of '{}' changed", replica_.parameters[parameter].name));
}

void EarlySteps::need_gradients() {
  is_clean_ = false;
  if (steps_) throw too_late("gradients are needed");
}

void EarlySteps::check_gradients() {
  is_checked_ = true;
  for (std::size_t parameter = 0; parameter < seen_.size(); ++parameter) {
    const Seen now = look_at(parameter);
    const bool is_same = now.tensor == seen_[parameter].tensor && now.version == seen_[parameter].version;
    if (is_same || now.tensor == nullptr) continue;  // one that was dropped cannot have been used for anything else
    is_clean_ = false;
    if (steps_) throw too_late(fmt::format("the gradient of '{}' was changed", replica_.parameters[parameter].name));
  }
}

bool EarlySteps::end() {
  if (watched_ >= kWatched) return false;
  if (!is_checked_) check_gradients();
  clean_ = is_clean_ ? clean_ + 1 : 0;
  return ++watched_ == kWatched;
}

}  // namespace dssync
