// The program dssync-train, which `dssync train` hands over to.
#include <CLI/CLI.hpp>

#include "quiet_torch.h"
#include "tool.h"
#include "train.h"
#include "train_run.h"

int main(int argc, char** argv) {
  using namespace dssync::cli;
  silence_torch();
  CLI::App app("Train a model on this machine's workers, or as one worker of many", "dssync train");
  dress(app);
  TrainCommand command;
  add_train_flags(app, command);
  return run_tool(app, argc, argv, [&] {
    settle(app, command);
    return run_train(command);
  });
}
