// What the programs `dssync` and `dssync-torch` have in common: how they answer --help, --version and wrong usage, and
// how an outcome becomes an exit status and, if it failed, one line on standard error.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace dssync::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;

// "SPEAKER: MESSAGE" on standard error, on one line. Returns `status`.
int complain(const std::string& speaker, const std::string& message, int status);

// Calls `work` and returns its status. An exception becomes a status by its kind, with `complain` told its message.
using Complain = std::function<int(const std::string& message, int status)>;
int guarded(const Complain& complain, const std::function<int()>& work);

// Gives the program its version flag and the looks of its help.
void dress(CLI::App& app);

// Parses the command line, then calls `work`, which returns an exit status. Call it once, from main().
int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work);

}  // namespace dssync::cli
