#include "dssync/training/run_checkpoints.h"

#include <random>
#include <utility>

#include "dssync/base/error.h"

namespace dssync {

RunCheckpoints::RunCheckpoints(World& world, Exchange& exchange, const std::filesystem::path& folder,
                               RunIdentity identity)
    : world_(world),
      exchange_(exchange),
      path_(folder),
      folder_(folder, world.rank()),
      identity_(std::move(identity)),
      latest_(exchange.broadcast("latest checkpoint", world.rank() == 0 ? folder_.latest() : "")),
      run_number_(std::stoull(exchange.broadcast("number of the run", std::to_string(std::random_device()())))) {}

Checkpoint RunCheckpoints::load() const {
  if (latest_.empty()) throw InputError(path_, 0, "there is no checkpoint to go on from");
  Checkpoint loaded = read_checkpoint(folder_.file_of(latest_), latest_, world_.rank());
  check_identity(folder_.file_of(latest_), loaded.identity, identity_);
  return loaded;
}

RunCheckpoints::Saved RunCheckpoints::save(Checkpoint checkpoint) {
  const std::string previous = std::exchange(latest_, CheckpointFolder::name_for(checkpoint.iteration, run_number_));
  checkpoint.name = latest_;
  checkpoint.rank = world_.rank();
  checkpoint.identity = identity_;
  const Saved saved{folder_.save(checkpoint), folder_.path_of(latest_)};
  exchange_.meet("saved a checkpoint");
  if (world_.rank() == 0) folder_.publish(latest_);
  folder_.keep_only(latest_, previous);
  // Nobody may begin the next one while others still remove what is not this one.
  exchange_.meet("published a checkpoint");
  return saved;
}

}  // namespace dssync
