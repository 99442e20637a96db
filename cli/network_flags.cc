#include "network_flags.h"

#include <cstdio>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "flags.h"
#include "run_network.h"
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
void check_started_here(bool is_given, const std::string& flag, const Place& place, const std::string& instead) {
  if (!is_given) return;
  throw InputError(fmt::format("{} is for workers that dssync starts itself, but {} started this one; expected {}",
                               flag, place.launcher, instead));
}

}  // namespace

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group) {
  add_parsed(app, "--topology", flags.topology, parse_path, "The network: dssync's YAML or Slurm's topology.conf")
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
  app.add_flag("--emulate", flags.emulate,
               "Build the network on this machine, with links as slow as they are there, and run on it")
      ->group(group);
  add_parsed(app, "--timeout", flags.timeout, parse_timeout,
             "How long to wait for other workers: at the start, and in every average (default 60s)")
      ->type_name("TIME")
      ->group(group);
  add_parsed(app, "--port", flags.port, parse_port,
             "Where workers that this command starts meet (default: any free port)")
      ->type_name("PORT")
      ->group(group);
}

Topology read_network(const NetworkFlags& flags, const std::optional<Place>& place, const std::string& speaker) {
  if (place) {
    check_started_here(flags.port != 0, "--port", *place, "the environment variable MASTER_PORT instead");
    check_started_here(flags.emulate, "--emulate", *place, "no launcher: dssync starts the workers in the testbed");
  }
  ReadResult network = network_of(flags.topology, flags.workers, flags.assumptions, place);
  if (!place || place->rank == 0) {
    for (const std::string& note : network.notes) fmt::print(stderr, "{}: note: {}\n", speaker, printable(note));
  }
  return std::move(network.topology);
}

}  // namespace dssync::cli
