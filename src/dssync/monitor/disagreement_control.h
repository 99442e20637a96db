// Steers the limit on S while training: tight while steps are large against the model, looser as they shrink, never
// above what the user permits. Not thread-safe. Deterministic: feed it figures that all workers share.
//
// Independent noise of variance v per step leaves a disagreement of lr^2 v S (docs/mixing.md). The measured
// disagreement of a plan with a known S thus tells lr^2 v, and with it what any other S would leave. The limit is the
// largest S of a ladder that keeps the root of (disagreement / |x|^2) within a target.
#pragma once

#include <cstdint>
#include <string>

namespace dssync {

struct DisagreementOptions {
  double permitted = 0.5;  // the largest limit: what the user allows
  double tightest = 0;     // the smallest; 0: permitted / 16
  double target = 0.02;    // allowed distance between replicas and their mean, as a part of the parameters' norm
  // A limit is left for a looser one only where that would stay below target * (1 - margin), after so many iterations.
  double margin = 0.2;
  // What all plans leave beside their S: averages that overlap computing miss the latest step.
  double missed = 0;
  int patience_iterations = 50;
};

class DisagreementControl {
 public:
  explicit DisagreementControl(const DisagreementOptions& options = {});

  struct Observation {
    std::int64_t iteration = 0;
    double learning_rate = 0;
    double disagreement = 0;         // mean over the workers of SyncMetrics::disagreement; 0: not measured (warm-up)
    double parameter_norm = 0;       // likewise
    double steady_disagreement = 0;  // S of the plan that it was measured under
  };

  // Once per batch. Returns the limit to plan with.
  double update(const Observation& observation);

  double limit() const { return limit_; }
  // Why it is what it is; one line for the log.
  const std::string& explanation() const { return explanation_; }

 private:
  void measure(const Observation& observation);
  double allowed(double learning_rate) const;
  double rung_below(double value) const;

  DisagreementOptions options_;
  double limit_;
  double relative_noise_ = 0;  // v / |x|^2, smoothed: disagreement / ((S + missed) lr^2 |x|^2)
  std::int64_t since_ = -1;    // the iteration from which on the limit was this one
  std::string explanation_;
};

}  // namespace dssync
