#include "flags/disagreement_limit.h"

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "text/numbers.h"

namespace dssync::cli {

Plan best_or_explain(Planner& planner, double disagreement, int group_limit) {
  if (std::optional<Plan> plan = planner.best(disagreement)) return *std::move(plan);
  const std::string smallest = rounded_up(planner.smallest_disagreement());
  throw InputError(fmt::format(
      "no schedule with groups of at most {0} keeps the disagreement within {1}; the smallest that groups of "
      "{0} allow is {2} (--disagreement {2})",
      group_limit, disagreement, smallest));
}

}  // namespace dssync::cli
