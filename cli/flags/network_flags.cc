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

}  // namespace dssync::cli
