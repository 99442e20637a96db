// How well a model does on test examples. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "dssync/training/data/dataset.h"
#include "dssync/training/exchange.h"
#include "dssync/training/models/model.h"
#include "dssync/training/task.h"

namespace dssync {

// Sums, so that those of several workers add up.
struct Score {
  std::int64_t targets = 0;
  std::int64_t correct = 0;
  double loss = 0;
  double disagreement = 0;     // what consolidating found on each worker
  RankedScores ranked;         // of tasks that rank
  std::optional<double> area;  // under the curve, of all workers' scores: where they were added up

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(targets); }
  double mean_loss() const { return loss / static_cast<double>(targets); }
};

// Of test examples first..last-1. The model is in training mode before and after.
Score evaluate(Model& model, const Task& task, const Dataset& test, std::int64_t first, std::int64_t last);

// The examples of one worker: [first, last).
struct Share {
  std::int64_t first = 0;
  std::int64_t last = 0;
};
Share share_of(std::int64_t examples, int rank, int workers);

// Collective: all workers get the sum of all scores, to the bit, and the exact area under the curve of tasks that rank.
Score add_up(Exchange& exchange, const Score& own, const Task& task);

}  // namespace dssync
