// Where one worker stands among all: what torchrun, mpirun, srun or our own launcher tell a process. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dssync/launch/run_id.h"

namespace dssync {

struct Assignment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;                    // among the workers on this machine; 0 where the launcher does not say
  std::string store_host = "127.0.0.1";  // where the c10d store is
  std::uint16_t store_port = 29500;      // 0: any free port (only for a server whose port is passed on)
  bool store_is_hosted = false;          // somebody else (torchrun's agent, our launcher) runs the store's server;
                                         // otherwise rank 0 does
  RunId run;                             // no name: the launcher did not say one, and rank 0 makes it
  std::string launcher;                  // for messages: "torchrun", "mpirun", "Slurm", "dssync"
};

// Reads a variable of the environment; nothing where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment process_environment();

// From the variables of torchrun (RANK, WORLD_SIZE, ...), Open MPI (OMPI_COMM_WORLD_*), MPICH (PMI_*) or Slurm
// (SLURM_PROCID, ...), in this order, since an inner launcher knows better than the one around it. Nothing where none
// of them is set, and where Slurm started no tasks to join: in a batch script, an interactive shell, a step of one
// task.
//
// The store is at MASTER_ADDR and MASTER_PORT (29500). Without MASTER_ADDR it is on this machine where all workers are,
// and under Slurm on the first host of the step, which runs task 0.
//
// The run is torchrun's (TORCHELASTIC_RUN_ID, where it is not torchrun's default "none"), with the number of its
// restarts: torchrun starts workers anew after a failure, on the same store.
//
// An empty variable counts as not set. Throws InputError, naming the variable, its value and what was expected, where
// some are missing or make no sense.
std::optional<Assignment> assignment_from(const Environment& environment);

}  // namespace dssync
