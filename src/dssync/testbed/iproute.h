// Runs `ip`, `tc` and `bridge` of the package iproute2 in a given namespace. No shell, no name looked up twice. May be
// used by one thread at a time, also of a process with several.
#pragma once

#include <string>
#include <vector>

#include "dssync/testbed/namespaces.h"

namespace dssync {

// The full path of a program, from PATH and where Debian keeps those of the administrator; empty where it is missing.
std::string find_program(const std::string& name);

// Runs one command, such as {"tc", "-json", "qdisc", "show"}, and returns its standard output. Throws TestbedError with
// the tool's own words and the command.
std::string run_tool(const std::vector<std::string>& command, const Space& where = {});

// Runs all commands of the text, one on each line, with `TOOL -batch -`, and returns its standard output. Throws
// TestbedError with the tool's own words and the line that failed; what came before it is done.
std::string run_batch(const std::string& tool, const std::string& text, const Space& where = {});

}  // namespace dssync
