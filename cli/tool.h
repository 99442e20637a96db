// What the programs `dssync` and `dssync-torch` have in common: how they answer --help, --version and wrong usage, and
// how an outcome becomes an exit status (launch/exit_status.h) and, if it failed, one line on standard error.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace dssync::cli {

// Gives the program --version, and its help the words and the footer that all verbs have.
void set_up_help(CLI::App& app);

// Parses the command line, then calls `work`, which returns an exit status. Call it once, from main().
int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work);

}  // namespace dssync::cli
