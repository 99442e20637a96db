#include "tool.h"

#include <csignal>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/version.h"
#include "dssync/launch/exit_status.h"
#include "terminal/output.h"

namespace dssync::cli {
namespace {

// The innermost verb that was given, or the program itself.
const CLI::App& verb_of(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? app : verb_of(*verbs.front());
}

// "dssync plan" once the verb is known.
std::string speaker_of(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? app.get_name() : app.get_name() + " " + speaker_of(*verbs.front());
}

// What is wrong with the command line, in one sentence. An unknown word explains more than what is missing because of
// it.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  const CLI::App& verb = verb_of(app);
  const bool needs_verb = verb.get_require_subcommand_min() > 0;
  std::string problem = error.what();
  if (!unknown.empty()) {
    const char* kind = unknown.front().starts_with("-") ? "flag" : needs_verb ? "verb" : "argument";
    problem = fmt::format("unknown {} '{}'", kind, unknown.front());
  } else if (needs_verb) {
    const std::vector<const CLI::App*> verbs = verb.get_subcommands([](const CLI::App*) { return true; });
    problem = fmt::format("a verb is required, such as {}", verbs.front()->get_name());
  }
  return fmt::format("{}; see {} --help", problem, speaker_of(app));
}

int parse_and_work(CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    write_result(app.help());
    return ExitStatus::kDone;
  } catch (const CLI::CallForVersion& version) {
    write_result(fmt::format("{}\n", version.what()));
    return ExitStatus::kDone;
  } catch (const CLI::ParseError& error) {
    return complain(speaker_of(app), usage_problem(app, error), ExitStatus::kBadInput);
  }
  return work();
}

}  // namespace

void set_up_help(CLI::App& app) {
  app.set_version_flag("--version", fmt::format("dssync {}", kVersion), "Print the version and exit");
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->label("REQUIRED", "(required)");
  app.footer("Exit status: 0 done, 1 failed, 2 bad usage or bad input.");
}

int run_tool(CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  // A reader that went away is a failed write, which is reported, not a silent death.
  std::signal(SIGPIPE, SIG_IGN);
  return exit_status_of(
      [&] { return parse_and_work(app, argc, argv, work); },
      [&](const std::string& message, int status) { return complain(speaker_of(app), message, status); });
}

}  // namespace dssync::cli
