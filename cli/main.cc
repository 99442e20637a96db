// The command line tool. Picks the verb and turns its outcome into an exit status:
// 0 done, 1 failed, 2 bad usage or bad input. Errors are one line on standard error.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/version.h"
#include "output.h"
#include "plan.h"
#include "text/style.h"

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

// "dssync plan" once the verb is known.
std::string speaker(const CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? "dssync" : "dssync " + verbs.front()->get_name();
}

int complain(const CLI::App& app, const std::string& message, int status) {
  fmt::print(stderr, "{}: {}\n", speaker(app), dssync::cli::printable(message));
  return status;
}

// What is wrong with the command line, in one sentence. An unknown word explains more than what is missing because of
// it.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  const bool has_verb = !app.get_subcommands().empty();
  std::string problem = error.what();
  if (!unknown.empty()) {
    const char* kind = unknown.front().starts_with("-") ? "flag" : has_verb ? "argument" : "verb";
    problem = fmt::format("unknown {} '{}'", kind, unknown.front());
  } else if (!has_verb) {
    problem = "a verb is required, such as plan";
  }
  return fmt::format("{}; see {} --help", problem, speaker(app));
}

int run(CLI::App& app, int argc, char** argv) {
  dssync::cli::PlanOptions plan;
  const CLI::App* plan_verb = dssync::cli::add_plan(app, plan);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    dssync::cli::write_result(app.help());
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    dssync::cli::write_result(fmt::format("{}\n", version.what()));
    return kDone;
  } catch (const CLI::ParseError& error) {
    return complain(app, usage_problem(app, error), kBadInput);
  }
  if (plan_verb->parsed()) dssync::cli::run_plan(plan);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that went away is a failed write, which is reported, not a silent death.
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Divide-and-shuffle synchronization for data-parallel training", "dssync");
  app.set_version_flag("--version", fmt::format("dssync {}", dssync::kVersion), "Print the version and exit");
  app.require_subcommand(1);
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.get_formatter()->label("REQUIRED", "(required)");
  app.footer("Exit status: 0 done, 1 failed, 2 bad usage or bad input.");
  try {
    return run(app, argc, argv);
  } catch (const dssync::InputError& error) {
    return complain(app, error.what(), kBadInput);
  } catch (const std::bad_alloc&) {
    return complain(app, "out of memory", kFailed);
  } catch (const std::exception& error) {
    return complain(app, error.what(), kFailed);
  }
}
