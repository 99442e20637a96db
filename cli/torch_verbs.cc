#include "torch_verbs.h"

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/bench.h"
#include "bench/bench_run.h"
#include "dssync/launch/exit_status.h"
#include "quiet_torch.h"
#include "terminal/output.h"
#include "tool.h"
#include "torch_program.h"
#include "train/train.h"
#include "train/train_run.h"

namespace dssync::cli {
namespace {

int train(int argc, char** argv) {
  CLI::App app(kTrainHelp, "dssync train");
  set_up_help(app);
  TrainCommand command;
  add_train_flags(app, command);
  command.words = {"dssync", "train"};
  command.words.insert(command.words.end(), argv + 1, argv + argc);
  return run_tool(app, argc, argv, [&] {
    resolve_flags(app, command);
    return run_train(command);
  });
}

int bench(int argc, char** argv) {
  CLI::App app(kBenchHelp, "dssync bench");
  set_up_help(app);
  BenchCommand command;
  add_bench_flags(app, command);
  return run_tool(app, argc, argv, [&] {
    resolve_flags(app, command);
    return run_bench(command);
  });
}

}  // namespace

int run_torch_verb(int argc, char** argv) {
  silence_torch();
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "train") return train(argc - 1, argv + 1);
  if (verb == "bench") return bench(argc - 1, argv + 1);
  return complain("dssync-torch", "expected the verb train or bench; start it as 'dssync train' or 'dssync bench'",
                  ExitStatus::kBadInput);
}

}  // namespace dssync::cli
