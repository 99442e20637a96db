// The verb `plan`: reads a topology, plans, and prints the plan. Used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "dssync/method/method.h"
#include "dssync/planner/exact_inside.h"
#include "dssync/topology/read.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct PlanOptions {
  std::string topology;
  std::int64_t bytes = 8'000'000;
  double disagreement = 0.5;
  int group_limit = 0;  // 0: none
  ExactInside exact_inside;
  CodecChoice codec{info_of(Method::kDsSync).codec};
  std::string schedule = "auto";
  std::string format = "text";
  std::string color = "auto";
  Assumptions assumptions;
};

// Declares the verb and its flags; parsing fills `options`. A bad value throws InputError.
CLI::App* add_plan(CLI::App& app, PlanOptions& options);

// Throws InputError for a bad file or a limit that no plan can meet, Error where the result cannot be written.
void run_plan(const PlanOptions& options);

}  // namespace dssync::cli
