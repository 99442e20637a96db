// The verb `train`: what its flags mean. train_run.h carries it out.
#pragma once

#include <string>
#include <vector>

#include "dssync/training/trainer.h"
#include "flags/network_flags.h"
#include "flags/sync_flags.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct TrainCommand {
  NetworkFlags network;
  std::string method = "ds-sync";
  SyncOptions sync;
  TrainOptions training;
  std::vector<std::string> words;  // the command line, for the log
  std::string format = "text";
  std::string color = "auto";
};

// Declares the flags; parsing fills `command`. A bad value throws InputError.
void add_train_flags(CLI::App& app, TrainCommand& command);

// After parsing: names become values. Throws InputError where flags do not go together, or belong to another method
// than the one that was chosen.
void resolve_flags(const CLI::App& app, TrainCommand& command);

}  // namespace dssync::cli
