// What this machine must be able to do for a testbed to work.
#pragma once

#include <string>
#include <vector>

namespace dssync {

// One sentence for each thing that is missing: programs, privileges, kinds of interfaces and queues in the kernel.
// Tried out in a child process, which leaves nothing behind. `latencies`: the links that have one, by name.
std::vector<std::string> missing_for_testbed(const std::vector<std::string>& latencies);

}  // namespace dssync
