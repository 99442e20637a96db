#include "dssync/monitor/disagreement_control.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dssync {
namespace {

constexpr double kSmoothing = 0.3;  // weight of the latest figure
constexpr double kRung = 2;         // from one limit of the ladder to the next
constexpr double kTightest = 16;    // unless said otherwise, times tighter than permitted

}  // namespace

DisagreementControl::DisagreementControl(const DisagreementOptions& options) : options_(options) {
  if (options_.tightest <= 0) options_.tightest = options_.permitted / kTightest;
  options_.tightest = std::min(options_.tightest, options_.permitted);
  limit_ = options_.tightest;
  explanation_ = fmt::format("limit on S {:.3g}: nothing was measured yet", limit_);
}

// The S that would put the replicas as far apart as the target allows.
double DisagreementControl::allowed(double learning_rate) const {
  const double per_unit = relative_noise_ * learning_rate * learning_rate;
  return per_unit > 0 ? options_.target * options_.target / per_unit - options_.missed : INFINITY;
}

double DisagreementControl::rung_below(double value) const {
  double rung = options_.permitted;
  while (rung > value && rung > options_.tightest) rung = std::max(options_.tightest, rung / kRung);
  return rung;
}

void DisagreementControl::measure(const Observation& observation) {
  const double scale = (observation.steady_disagreement + options_.missed) * observation.learning_rate *
                       observation.learning_rate * observation.parameter_norm * observation.parameter_norm;
  if (!(scale > 0) || !(observation.disagreement > 0)) return;
  const double noise = observation.disagreement / scale;
  if (!std::isfinite(noise)) return;
  // More noise is believed at once, less of it by and by.
  relative_noise_ = std::max(noise, relative_noise_ > 0 ? relative_noise_ + kSmoothing * (noise - relative_noise_) : 0);
}

double DisagreementControl::update(const Observation& observation) {
  measure(observation);
  if (since_ < 0) since_ = observation.iteration;
  const bool unseen = relative_noise_ <= 0 && observation.steady_disagreement + options_.missed > 0;
  const double most = allowed(observation.learning_rate);
  const double tight = rung_below(most);
  const double loose = std::min(options_.permitted, limit_ * kRung);
  const double margin = (1 - options_.margin) * (1 - options_.margin);
  double next = limit_;
  if (tight < limit_) {
    next = tight;
  } else if (!unseen && loose > limit_ && loose <= margin * most &&
             observation.iteration - since_ >= options_.patience_iterations) {
    next = loose;
  }
  if (next != limit_) {
    since_ = observation.iteration;
    explanation_ = fmt::format(
        "limit on S {:.3g} instead of {:.3g}: at learning rate {:.3g} replicas would be {:.2g} of the parameters' norm "
        "from "
        "their mean (target {:.2g})",
        next, limit_, observation.learning_rate,
        std::sqrt(relative_noise_ * (next + options_.missed)) * observation.learning_rate, options_.target);
    limit_ = next;
  }
  return limit_;
}

}  // namespace dssync
