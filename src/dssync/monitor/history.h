// The last iterations, each read with the plan that it was made with, and how long all of them took. Internal to the
// monitor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "dssync/monitor/observation.h"
#include "dssync/monitor/sample.h"
#include "dssync/planner/stage_table.h"

namespace dssync {

class History {
 public:
  // `links` in the network; figures are medians of a `window` of iterations, none older than `forget` of them.
  History(std::size_t links, std::size_t window, std::int64_t forget)
      : links_(links), window_(window), forget_(forget) {}

  // The plan from this iteration on.
  void adopt(std::int64_t first_iteration, std::shared_ptr<const StageTable> table);

  // The iterations of the batch, as sane() leaves it, that were not added before.
  void add(const SampleBatch& batch);

  std::size_t window() const { return window_; }
  std::int64_t last_iteration() const { return last_iteration_; }            // -1 before the first
  const std::shared_ptr<const StageTable>& table() const { return table_; }  // of the last one; null before
  bool empty() const { return views_.empty(); }                              // none of this table

  // The latest figures that are above 0 (known), at most `most` of them.
  template <typename Figure>
  std::vector<double> latest(std::size_t most, Figure figure) const {
    std::vector<double> values;
    for (auto view = views_.rbegin(); view != views_.rend() && values.size() < most; ++view) {
      if (const double value = figure(*view); value > 0) values.push_back(value);
    }
    return values;
  }

  // What others put on the link in the last window of iterations, in bytes per second, as far as its host counts: all
  // that it counted, but for `framing` times the bytes of the stages.
  double others_on(std::size_t link, double framing) const;

  // The last window of iterations in which all members told how long the stage took, latest first.
  std::vector<const IterationView*> complete(std::size_t stage) const;

  // Of the slowest worker, lately.
  double compute_seconds() const;
  double iteration_seconds(bool overlap) const { return paces_[overlap].usual; }
  double elapsed_seconds(bool overlap) const { return paces_[overlap].elapsed; }

 private:
  // What iterations take. It outlives a plan and its views.
  struct Pace {
    double usual = 0;
    double elapsed = 0;
  };

  void view(std::int64_t iteration, const SampleBatch& batch);
  template <typename Seconds>
  void keep_time(Pace& pace, std::int64_t unheard, Seconds seconds);

  std::size_t links_;
  std::size_t window_;
  std::int64_t forget_;
  std::deque<std::pair<std::int64_t, std::shared_ptr<const StageTable>>> tables_;  // by first iteration
  std::shared_ptr<const StageTable> table_;
  std::deque<IterationView> views_;  // of this table, ascending
  Pace paces_[2];                    // in line, overlapped
  std::int64_t last_iteration_ = -1;
};

}  // namespace dssync
