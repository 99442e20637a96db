// The directory of all checkpoints of a run:
//
//   latest                          the name of the checkpoint to go on from
//   iteration-00000468-3f2a9c1e/    one checkpoint (the last part is different in every run)
//     rank-0.ckpt ...               one file for each worker
//
// A checkpoint counts from when `latest` names it, which is when all its files are there. The one before is kept, too.
// Workers on other machines may have their own directory; `latest` is rank 0's. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "dssync/training/checkpoints/checkpoint.h"

namespace dssync {

class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path folder, int rank);

  // A name that no other run gives. `run` is the same on all workers.
  static std::string name_for(std::int64_t iteration, std::uint64_t run);

  // The checkpoint to go on from; empty where there is none. Throws Error where the file cannot be read or is damaged.
  std::string latest() const;

  std::filesystem::path path_of(const std::string& name) const { return folder_ / name; }
  std::filesystem::path file_of(const std::string& name) const;

  // Saves this worker's part and returns its size. Throws Error that names file, rank and cause; then everything that
  // counted before still counts.
  std::int64_t save(const Checkpoint& checkpoint) const;

  // Rank 0, when the parts of all workers are saved: lets the checkpoint count.
  void publish(const std::string& name) const;

  // Removes all checkpoints but these two: rank 0 after publishing, the others once all parts are saved. What cannot be
  // removed stays.
  void keep_only(const std::string& newest, const std::string& previous) const;

 private:
  std::filesystem::path folder_;
  int rank_;
};

}  // namespace dssync
