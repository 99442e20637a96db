// What `dssync testbed` tells of testbeds, as text for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "dssync/testbed/record.h"

namespace dssync::cli {

// After `up`: name, hosts, and how to go on.
std::string testbed_introduction(const TestbedRecord& record);

// Both look at the links as they are now. docs/command-line.md describes the keys.
std::string testbeds_as_text(const std::vector<TestbedRecord>& records);
std::string testbeds_as_json(const std::vector<TestbedRecord>& records);

}  // namespace dssync::cli
