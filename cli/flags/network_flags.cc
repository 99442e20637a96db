#include "flags/network_flags.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "flags/flags.h"
#include "network/run_network.h"
#include "terminal/output.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

std::uint16_t parse_port(const std::string& text) {
  return static_cast<std::uint16_t>(whole_number_from(1, int{std::numeric_limits<std::uint16_t>::max()})(text));
}

// c10d counts a timeout in milliseconds.
Seconds parse_timeout(const std::string& text) {
  const Seconds value = parse_duration(text);
  if (value >= Seconds(0.1) && value <= Seconds(86'400)) return value;
  throw InputError(fmt::format("expected a time from 100ms to 1440min, but found '{}'", text));
}

// Throws where a flag is for workers that this process starts, but somebody else did.
void check_started_here(bool is_given, const std::string& flag, const Assignment& place, const std::string& instead) {
  if (!is_given) return;
  throw InputError(fmt::format("{} is for workers that dssync starts itself, but {} started this one; expected {}",
                               flag, place.launcher, instead));
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

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group) {
  add_parsed(app, "--topology", flags.topology, parse_path,
             "The network: dssync's YAML or Slurm's topology.conf; auto: the workers measure it, in less than 20 s")
      ->type_name("FILE|auto")
      ->group(group);
  add_parsed(app, "--save-topology", flags.save_topology, parse_path, "Where to write what --topology auto found")
      ->type_name("FILE")
      ->group(group);
  add_parsed(app, "--workers", flags.workers, whole_number_from(1, 10'000),
             "How many, on one switch; instead of --topology. Without rank variables all of them start on this machine")
      ->type_name("N")
      ->group(group);
  add_assumption_flags(app, flags.assumptions);
  for (const char* flag : {"--nic", "--uplink"}) app.get_option(flag)->group(group);
  app.get_option("--nic")->description(
      "Speed of the NICs of which the file says nothing, and of those of --workers (default 10Gbps)");
  app.add_option_function<std::string>(
         "--emulate",
         [&flags](const std::string& file) {
           flags.emulate = true;
           flags.emulated = file;
         },
         "Build the network on this machine, with links as slow as they are there, and run on it; with --topology "
         "auto that of FILE")
      ->expected(0, 1)
      ->type_name("[FILE]")
      ->group(group);
  add_latency_flag(app, flags.ignore_latency);
  app.get_option("--ignore-latency")->group(group);
  add_parsed(app, "--timeout", flags.timeout, parse_timeout,
             "How long to wait for other workers: at the start, and in every average (default: 60s, or ten times the "
             "predicted iteration if that is longer)")
      ->type_name("TIME")
      ->group(group);
  add_parsed(app, "--port", flags.port, parse_port,
             "Where workers that this command starts meet (default: any free port)")
      ->type_name("PORT")
      ->group(group);
}

void add_latency_flag(CLI::App& app, bool& ignore) {
  app.add_flag("--ignore-latency", ignore, "Build the network without the latencies of its links");
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

KnownNetwork read_network(const NetworkFlags& flags, const std::optional<Assignment>& place,
                          const std::string& speaker) {
  if (place) {
    check_started_here(flags.port != 0, "--port", *place, "the environment variable MASTER_PORT instead");
    check_started_here(flags.emulate, "--emulate", *place, "no launcher: dssync starts the workers in the testbed");
  }
  check_discovery(flags);
  if (flags.ignore_latency && !flags.emulate) throw InputError("--ignore-latency needs --emulate");
  if (!place || place->rank == 0) check_writable("--save-topology", flags.save_topology);
  if (flags.is_discovered() && !flags.emulate) return {workers_of(flags.workers, place), {}, {}};
  const std::optional<std::string> file = flags.is_discovered() ? flags.emulated : flags.topology;
  ReadResult network = network_of(file, flags.workers, flags.assumptions, place);
  if (!place || place->rank == 0) {
    for (const std::string& note : network.notes) fmt::print(stderr, "{}: note: {}\n", speaker, printable(note));
  }
  if (flags.ignore_latency) network.topology = drop_latency(network.topology, speaker);
  KnownNetwork known{network.topology.workers(), {}, {}};
  if (!flags.is_discovered()) known.topology = network.topology;
  if (flags.emulate) known.emulated = network.topology;
  return known;
}

}  // namespace dssync::cli
