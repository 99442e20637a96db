// The checkpoints of one run, saved and loaded by all workers together. Collective: every worker makes the same calls
// in the same order. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "dssync/comm/world.h"
#include "dssync/training/checkpoints/checkpoint_folder.h"
#include "dssync/training/exchange.h"

namespace dssync {

class RunCheckpoints {
 public:
  // World and exchange must outlive it.
  RunCheckpoints(World& world, Exchange& exchange, const std::filesystem::path& folder, RunIdentity identity);

  // This worker's part of the latest one. Throws InputError where there is none, and where it is of another run.
  Checkpoint load() const;

  struct Saved {
    std::int64_t bytes = 0;  // of this worker's part
    std::filesystem::path folder;
  };
  // Name, rank and identity of the checkpoint are filled in. It counts once all workers have saved their parts.
  Saved save(Checkpoint checkpoint);

 private:
  World& world_;
  Exchange& exchange_;
  const std::filesystem::path path_;
  CheckpointFolder folder_;
  const RunIdentity identity_;
  std::string latest_;  // its name; empty where there is none
  std::uint64_t run_number_;
};

}  // namespace dssync
