// The verb `testbed`: networks of namespaces from the command line. Its own verbs: up, down, status, exec, contend.
// Used by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/topology/read.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct TestbedOptions {
  std::string verb;  // that was chosen
  std::string name;  // empty: the only one there is
  std::string topology;
  Assumptions assumptions;
  bool ignore_latency = false;  // up
  bool all = false;             // down
  std::string format = "text";
  std::string host;  // exec
  std::vector<std::string> command;
  std::string link;  // contend
  Bandwidth rate;
  Seconds after{0};
  std::optional<Seconds> duration;
  bool traffic = false;
};

// Declares the verb and its flags; parsing fills `options`. A bad value throws InputError.
CLI::App* add_testbed(CLI::App& app, TestbedOptions& options);

// Returns the exit status. `exec` does not return where it succeeds: the process becomes the command.
int run_testbed(const TestbedOptions& options);

}  // namespace dssync::cli
