// The verb `train`: what its flags mean. train_run.h carries it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dssync/runtime/synchronizer.h"
#include "dssync/topology/read.h"
#include "dssync/training/trainer.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct TrainCommand {
  std::optional<std::string> topology;  // a file; without one a flat network of `workers`
  int workers = 0;                      // 0: as many as the topology or the launcher says
  Assumptions assumptions;

  std::string method = "ds-sync";
  std::string schedule = "auto";
  std::string optimizer_state = "rotating";
  bool overlap = false;
  bool in_line = false;

  TrainOptions training;
  SyncOptions sync;

  Seconds timeout{60};
  std::uint16_t port = 0;  // of the store, where this process starts the workers; 0: any free one
  std::string format = "text";
  std::string color = "auto";
};

// Declares the flags; parsing fills `command`. A bad value throws InputError.
void add_train_flags(CLI::App& app, TrainCommand& command);

// After parsing: names become values. Throws InputError where flags do not go together, or belong to another method
// than the one that was chosen.
void settle(const CLI::App& app, TrainCommand& command);

}  // namespace dssync::cli
