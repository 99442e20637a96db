#include "network/run_network.h"

#include <vector>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

std::string workers_text(int workers) { return counted(static_cast<std::size_t>(workers), "worker"); }

}  // namespace

int workers_of(int workers, const std::optional<Assignment>& place) {
  if (workers == 0 && !place) {
    throw InputError(
        "--workers or --topology FILE is required, unless torchrun, mpirun or srun starts the workers and says how "
        "many");
  }
  const int count = workers == 0 ? place->size : workers;
  if (place && place->size != count) {
    throw InputError(
        fmt::format("--workers is {}, but {} started {}", count, place->launcher, workers_text(place->size)));
  }
  return count;
}

Topology flat_network(int workers, Bandwidth nic) {
  std::vector<Topology::HostSpec> hosts;
  for (int i = 0; i < workers; ++i) {
    Topology::HostSpec host;
    host.name = fmt::format("worker{}", i);
    host.switch_name = "switch";
    host.nic = nic;
    hosts.push_back(host);
  }
  Topology::SwitchSpec root;
  root.name = "switch";
  return Topology::build({root}, hosts, "--workers");
}

ReadResult network_of(const std::optional<std::string>& file, int workers, const Assumptions& assumptions,
                      const std::optional<Assignment>& place) {
  if (!file) return {flat_network(workers_of(workers, place), assumptions.nic.value_or(kFlatNic)), {}};
  ReadResult result = read_topology(*file, assumptions);
  const int count = result.topology.workers();
  if (workers != 0 && workers != count) {
    throw InputError(*file, 0, fmt::format("has {}, but --workers is {}", workers_text(count), workers));
  }
  if (place && place->size != count) {
    throw InputError(*file, 0,
                     fmt::format("has {}, but {} started {}", workers_text(count), place->launcher, place->size));
  }
  return result;
}

}  // namespace dssync::cli
