#include "verbs.h"

#include <string>

#include <CLI/CLI.hpp>

#include "dssync/launch/exit_status.h"
#include "plan/plan.h"
#include "report/report.h"
#include "terminal/output.h"
#include "testbed/testbed.h"
#include "tool.h"
#include "torch_program.h"

namespace dssync::cli {

int run_verb(int argc, char** argv) {
  if (is_torch_verb(argc, argv)) {
    return exit_status_of([&]() -> int { become_torch_program(argc, argv); },
                          [&](const std::string& message, int status) {
                            return complain(std::string("dssync ") + argv[1], message, status);
                          });
  }
  CLI::App app("Divide-and-shuffle synchronization for data-parallel training", "dssync");
  set_up_help(app);
  app.require_subcommand(1);
  PlanOptions plan;
  ReportFlags report;
  add_plan(app, plan);
  add_torch_verbs(app);
  TestbedOptions testbed;
  const CLI::App* const testbed_verb = add_testbed(app, testbed);
  const CLI::App* const report_verb = add_report(app, report);
  return run_tool(app, argc, argv, [&] {
    if (testbed_verb->parsed()) return run_testbed(testbed);
    if (report_verb->parsed()) {
      run_report(report);
    } else {
      run_plan(plan);
    }
    return ExitStatus::kDone;
  });
}

}  // namespace dssync::cli
