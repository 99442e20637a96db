// All that `dssync plan` has to tell, worked out once and then written as JSON or as text. Plain values.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dssync/planner/codec_error.h"
#include "dssync/planner/exact_inside.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"
#include "text/style.h"

namespace dssync::cli {

// What another limit on the disagreement would bring.
struct LimitRow {
  double limit = 0;
  bool chosen = false;
  bool feasible = false;
  double disagreement = 0;  // of the plan or, where there is none, the smallest that the group limit allows
  double seconds = 0;
  std::size_t rounds = 0;
  std::size_t meetings_of_all = 0;
};

struct PlanReport {
  std::string source;  // the topology's file, as the user wrote it
  std::vector<std::string> notes;
  std::int64_t bytes = 0;
  double disagreement_limit = 0;
  int group_limit = 0;  // 0: none
  ExactInside exact_inside;
  bool published = false;
  CodecChoice codec;  // as asked for
  int levels = 0;     // the highest level of the network
  Plan plan;
  double ring_seconds = 0;
  double hierarchical_seconds = 0;
  // Where values travel in codecs: of the fastest plan in float32, and of the faster exact method in the shortest codec
  // of the plan.
  double float32_seconds = 0;
  double encoded_baseline = std::numeric_limits<double>::infinity();
  std::vector<LimitRow> limits;  // ascending; for the text only

  // Of all averages of an iteration, those of gradients inside exact regions included.
  double seconds() const { return plan.cost.seconds_per_iteration + plan.inside.seconds_per_iteration; }

  // Rounding in the last digit is no breach.
  bool within_limit() const { return plan.disagreement() <= disagreement_limit * (1 + 1e-9) + 1e-12; }

  // What a worker keeps besides the model, for each parameter of 4 bytes: the reference, where there are codecs.
  int reference_bytes() const { return plan.codecs.is_float32() || !has_reference(plan.rounds) ? 0 : 4; }
};

std::string plan_as_json(const PlanReport& report, const Topology& topology);
std::string plan_as_text(const PlanReport& report, const Topology& topology, const Style& style);

}  // namespace dssync::cli
