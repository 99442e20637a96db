// What one worker saves, and its file. A checkpoint is a directory with one such file for each worker, see
// checkpoint_folder.h. Nothing random has a state to save: the order of the examples is a function of seed and epoch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "dssync/sync/synchronizer.h"

namespace dssync {

// What makes a run this run: options that a run must share with the checkpoint it goes on from, as they are written on
// the command line.
using RunIdentity = std::vector<std::pair<std::string, std::string>>;

struct Checkpoint {
  std::string name;  // of the checkpoint, the same in the files of all workers
  int rank = 0;
  RunIdentity identity;
  std::int64_t iteration = 0;  // iterations that were done
  std::int64_t epoch = 0;      // epochs that were completed
  double seconds = 0;          // see EvaluationReport
  double training_seconds = 0;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  std::vector<OptimizerState> optimizer;
  SyncState sync;                 // its iteration is the checkpoint's
  std::vector<NamedTensor> mean;  // of the parameters over iterations (stochastic weight averaging), where it is taken
  std::int64_t mean_count = 0;    // of how many
};

// Writes the file whole or not at all, and returns its size. Throws Error that names file, rank and cause.
std::int64_t write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint);

// Throws Error that names file, rank and cause where the file is missing, truncated, damaged, or not the one of this
// checkpoint and rank.
Checkpoint read_checkpoint(const std::filesystem::path& file, const std::string& name, int rank);

// Throws InputError that names the first difference and what to do.
void check_identity(const std::filesystem::path& file, const RunIdentity& saved, const RunIdentity& own);

}  // namespace dssync
