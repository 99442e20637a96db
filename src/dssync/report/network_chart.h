// The network as a tree from left to right, each cable as wide and dark as it is loaded, and the rounds of a plan as
// small multiples. Readable with up to 64 workers; of larger networks the hosts of a switch are drawn as one. Pure;
// thread-safe.
#pragma once

#include <string>

#include "dssync/report/comparison.h"

namespace dssync {

// REQUIRES: the group has a network. Empty where that has no tree.
std::string draw_network(const RunGroup& group, const std::string& id);

// What the widths and colours of cables mean.
std::string load_legend();

// Each different round of the cycle once. Empty where there is no plan.
std::string draw_rounds(const RunGroup& group, const std::string& id);

}  // namespace dssync
