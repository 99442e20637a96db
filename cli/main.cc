// The command line tool. Picks the verb and turns its outcome into an exit status (tool.h).
#include <string>

#include <CLI/CLI.hpp>

#include "plan.h"
#include "testbed.h"
#include "tool.h"
#include "train_program.h"

int main(int argc, char** argv) {
  using namespace dssync::cli;
  if (is_train(argc, argv)) {
    const Complain tell = [](const std::string& message, int status) {
      return complain("dssync train", message, status);
    };
    return guarded(tell, [&]() -> int { become_train(argc, argv); });
  }
  CLI::App app("Divide-and-shuffle synchronization for data-parallel training", "dssync");
  dress(app);
  app.require_subcommand(1);
  PlanOptions plan;
  add_plan(app, plan);
  add_train(app);
  TestbedOptions testbed;
  const CLI::App* const testbed_verb = add_testbed(app, testbed);
  return run_tool(app, argc, argv, [&] {
    if (testbed_verb->parsed()) return run_testbed(testbed);
    run_plan(plan);
    return kDone;
  });
}
