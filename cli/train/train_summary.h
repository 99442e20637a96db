// What `train` tells before and after: the run in words, a table, or JSON. Plain values and functions.
#pragma once

#include <string>

#include "dssync/monitor/plan_change.h"
#include "dssync/training/log/reports.h"
#include "text/style.h"
#include "train/train_figures.h"

namespace dssync::cli {

struct TrainSummary {
  StartReport start;
  TrainResult result;
  TrainFigures figures;                  // of rank 0, without iterations before the run was resumed
  double consolidated_disagreement = 0;  // as the last evaluation found it
  std::string log;                       // empty: none
  std::string trace;
  std::string checkpoint;
};

// Two or three lines: workers, model, method, plan.
std::string start_as_text(const StartReport& report);

// "epoch 1: accuracy 87.3 %, loss 0.352 after 12.3 s".
std::string evaluation_as_text(const EvaluationReport& report);

// "after iteration 41: rack-a up 200 Mbit/s -> 25 Mbit/s; new plan (...) for 450 ms instead of 2.2 s per iteration".
std::string replanned_as_text(const PlanChange& change);

std::string summary_as_text(const TrainSummary& summary, const Style& style);
std::string summary_as_json(const TrainSummary& summary);

}  // namespace dssync::cli
