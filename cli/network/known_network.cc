#include "network/known_network.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "terminal/output.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

std::string workers_text(int workers) { return counted(static_cast<std::size_t>(workers), "worker"); }

// Throws where a flag is for workers that this process starts, but somebody else did.
void check_started_here(bool is_given, const std::string& flag, const Assignment& assignment,
                        const std::string& instead) {
  if (!is_given) return;
  throw InputError(fmt::format("{} is for workers that dssync starts itself, but {} started this one; expected {}",
                               flag, assignment.launcher, instead));
}

void check_discovery(const NetworkFlags& flags) {
  if (!flags.is_discovered()) {
    if (!flags.save_topology.empty()) throw InputError("--save-topology needs --topology auto");
    if (!flags.emulated.empty()) {
      throw InputError(
          fmt::format("--emulate {0} needs --topology auto: the workers run on the network that they are "
                      "told; expected --topology {0} --emulate, or --topology auto",
                      flags.emulated));
    }
    return;
  }
  if (flags.emulate && flags.emulated.empty()) {
    throw InputError("--emulate needs a file with --topology auto: --emulate FILE is built, and the workers find out");
  }
  if (!flags.emulate && (flags.assumptions.nic || flags.assumptions.uplink)) {
    throw InputError("--nic and --uplink are for what a topology file does not say; --topology auto measures it");
  }
}

}  // namespace

int workers_of(int workers, const std::optional<Assignment>& assignment) {
  if (workers == 0 && !assignment) {
    throw InputError(
        "--workers or --topology FILE is required, unless torchrun, mpirun or srun starts the workers and says how "
        "many");
  }
  const int count = workers == 0 ? assignment->size : workers;
  if (assignment && assignment->size != count) {
    throw InputError(
        fmt::format("--workers is {}, but {} started {}", count, assignment->launcher, workers_text(assignment->size)));
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
                      const std::optional<Assignment>& assignment) {
  if (!file) return {flat_network(workers_of(workers, assignment), assumptions.nic.value_or(kFlatNic)), {}};
  ReadResult result = read_topology(*file, assumptions);
  const int count = result.topology.workers();
  if (workers != 0 && workers != count) {
    throw InputError(*file, 0, fmt::format("has {}, but --workers is {}", workers_text(count), workers));
  }
  if (assignment && assignment->size != count) {
    throw InputError(
        *file, 0,
        fmt::format("has {}, but {} started {}", workers_text(count), assignment->launcher, assignment->size));
  }
  return result;
}

Topology drop_latency(const Topology& topology, const std::string& speaker) {
  const auto count = std::count_if(topology.links().begin(), topology.links().end(),
                                   [](const Link& link) { return link.latency.count() > 0; });
  if (count > 0) {
    fmt::print(stderr, "{}: note: the latency of {} is left out\n", speaker,
               counted(static_cast<std::size_t>(count), "link"));
  }
  return topology.without_latency();
}

KnownNetwork read_network(const NetworkFlags& flags, const std::optional<Assignment>& assignment,
                          const std::string& speaker) {
  if (assignment) {
    check_started_here(flags.port != 0, "--port", *assignment, "the environment variable MASTER_PORT instead");
    check_started_here(flags.emulate, "--emulate", *assignment,
                       "no launcher: dssync starts the workers in the testbed");
  }
  check_discovery(flags);
  if (flags.ignore_latency && !flags.emulate) throw InputError("--ignore-latency needs --emulate");
  if (!assignment || assignment->rank == 0) check_writable("--save-topology", flags.save_topology);
  if (flags.is_discovered() && !flags.emulate) return {workers_of(flags.workers, assignment), {}, {}};
  const std::optional<std::string> file = flags.is_discovered() ? flags.emulated : flags.topology;
  ReadResult network = network_of(file, flags.workers, flags.assumptions, assignment);
  if (!assignment || assignment->rank == 0) {
    for (const std::string& note : network.notes) fmt::print(stderr, "{}: note: {}\n", speaker, printable(note));
  }
  if (flags.ignore_latency) network.topology = drop_latency(network.topology, speaker);
  KnownNetwork known{network.topology.workers(), {}, {}};
  if (!flags.is_discovered()) known.topology = network.topology;
  if (flags.emulate) known.emulated = network.topology;
  return known;
}

}  // namespace dssync::cli
