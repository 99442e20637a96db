// How much longer a stage usually takes than the busiest of its links would need: pipelines that fill, messages, the
// CPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "dssync/monitor/observation.h"

namespace dssync {

class Overhead {
 public:
  bool known() const { return known_; }
  double factor() const { return factor_; }

  void add(double ratio) {
    if (known_) return;
    ratios_.push_back(ratio);
    if (ratios_.size() < kCalibration) return;
    factor_ = std::clamp(median(ratios_), 1.0, kMost);
    known_ = true;
  }

  // What it takes at best is overhead, the rest was contention.
  void lower_to(double ratio) {
    if (known_) factor_ = std::clamp(ratio, 1.0, factor_);
  }

  // To be learned anew; the old figure will do meanwhile.
  void doubt() {
    known_ = false;
    ratios_.clear();
  }

 private:
  static constexpr double kTypical = 1.1;
  static constexpr double kMost = 1.6;
  static constexpr std::size_t kCalibration = 4;  // iterations

  bool known_ = false;
  double factor_ = kTypical;
  std::vector<double> ratios_;
};

}  // namespace dssync
