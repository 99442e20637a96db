#include "flags/network_flags.h"

#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "flags/flags.h"

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

}  // namespace

void add_network_flags(CLI::App& app, NetworkFlags& flags, const std::string& group) {
  add_parsed(
      app, "--topology", flags.topology, parse_path,
      "Read the network from FILE, dssync's YAML or Slurm's topology.conf; auto: let the workers measure it, in less "
      "than 20 s")
      ->type_name("FILE|auto")
      ->group(group);
  add_parsed(app, "--save-topology", flags.save_topology, parse_path,
             "Write the network that --topology auto found to FILE")
      ->type_name("FILE")
      ->group(group);
  add_parsed(
      app, "--workers", flags.workers, whole_number_from(1, 10'000),
      "Run N workers on one switch, instead of --topology. All of them start on this machine, unless torchrun, mpirun "
      "or srun starts them")
      ->type_name("N")
      ->group(group);
  add_assumption_flags(app, flags.assumptions);
  for (const char* flag : {"--nic", "--uplink"}) app.get_option(flag)->group(group);
  app.get_option("--nic")->description(
      "Take this speed for NICs of which the file says nothing, and for those of --workers (default: 10Gbps, none in "
      "YAML)");
  app.add_option_function<std::string>(
         "--emulate",
         [&flags](const std::string& file) {
           flags.emulate = true;
           flags.emulated = file;
         },
         "Build the network on this machine, with links as slow as they are there, and run on it. With --topology "
         "auto, "
         "build that of FILE for the workers to find out")
      ->expected(0, 1)
      ->type_name("[FILE]")
      ->group(group);
  add_latency_flag(app, flags.ignore_latency);
  app.get_option("--ignore-latency")->group(group);
  add_parsed(
      app, "--timeout", flags.timeout, parse_timeout,
      "Wait so long for other workers, at the start and in every average (default: 60s, or ten times the predicted "
      "iteration if that is longer)")
      ->type_name("TIME")
      ->group(group);
  add_parsed(app, "--port", flags.port, parse_port,
             "Let the workers that this command starts meet at PORT (default: any free port)")
      ->type_name("PORT")
      ->group(group);
}

void add_latency_flag(CLI::App& app, bool& ignore) {
  app.add_flag("--ignore-latency", ignore, "Build the network without the latencies of its links");
}

}  // namespace dssync::cli
