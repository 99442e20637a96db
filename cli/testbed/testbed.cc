#include "testbed/testbed.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/launch/exit_status.h"
#include "dssync/testbed/handle.h"
#include "flags/flags.h"
#include "flags/network_flags.h"
#include "network/known_network.h"
#include "terminal/output.h"
#include "testbed/testbed_contend.h"
#include "testbed/testbed_keeper.h"
#include "testbed/testbed_status.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

CLI::App* add_verb(CLI::App& testbed, TestbedOptions& options, const std::string& name, const std::string& help) {
  CLI::App* verb = testbed.add_subcommand(name, help);
  verb->callback([&options, name] { options.verb = name; });
  return verb;
}

void add_name(CLI::App& verb, TestbedOptions& options, const std::string& flag = "--name") {
  verb.add_option(flag, options.name, "Use this testbed (default: the only one)")->type_name("NAME");
}

void add_up(CLI::App& testbed, TestbedOptions& options) {
  CLI::App* verb =
      add_verb(testbed, options, "up", "Build the network of a topology file; it stays until 'testbed down'");
  verb->add_option("--topology", options.topology, "Read the network from FILE: dssync's YAML or Slurm's topology.conf")
      ->required()
      ->type_name("FILE");
  verb->add_option("--name", options.name, "Call the testbed NAME (default: testbed-1, or the next free number)")
      ->type_name("NAME");
  add_assumption_flags(*verb, options.assumptions);
  add_latency_flag(*verb, options.ignore_latency);
}

void add_contend(CLI::App& testbed, TestbedOptions& options) {
  CLI::App* verb = add_verb(testbed, options, "contend", "Take away a part of a link's capacity, as another job would");
  verb->add_option("LINK", options.link,
                   "Take it from this link: \"rack-a up\", \"a0 out\", or \"rack-a\" for both directions")
      ->required();
  add_parsed(*verb, "RATE", options.rate, parse_bandwidth, "Leave so much of the capacity, such as 10Mbps")->required();
  add_name(*verb, options);
  add_parsed(*verb, "--after", options.after, parse_duration, "Wait so long first (default 0s)")->type_name("TIME");
  add_parsed(*verb, "--for", options.duration, parse_duration,
             "Give it back after so long (default: never; with --traffic: on Ctrl-C)")
      ->type_name("TIME");
  verb->add_flag("--traffic", options.traffic, "Send real traffic over the link instead of changing its rate");
}

int up(const TestbedOptions& options) {
  const ReadResult input = read_topology(options.topology, options.assumptions);
  for (const std::string& note : input.notes) fmt::print(stderr, "dssync testbed up: note: {}\n", printable(note));
  const Topology topology = options.ignore_latency ? drop_latency(input.topology, "dssync testbed up") : input.topology;
  const std::string name = start_keeper(topology, options.name, options.topology);
  write_result(testbed_introduction(TestbedHandle::find(name).record()));
  return ExitStatus::kDone;
}

std::string describe(const EndedTestbed& ended) {
  const std::string processes = ended.processes == 1 ? "1 process" : fmt::format("{} processes", ended.processes);
  if (!ended.was_left_over) return fmt::format("{}: ended, {}\n", ended.name, processes);
  if (ended.processes == 0) return fmt::format("{}: removed what a killed process had left\n", ended.name);
  return fmt::format("{}: removed what a killed process had left, {} among it\n", ended.name, processes);
}

int down(const TestbedOptions& options) {
  const Registry registry = Registry::of_user();
  std::vector<TestbedRecord> chosen = registry.list();
  registry.remove_drafts();
  if (!options.name.empty()) {
    check_testbed_name(options.name);
    std::erase_if(chosen, [&](const TestbedRecord& record) { return record.name != options.name; });
  } else if (!options.all && chosen.size() > 1) {
    std::string names;
    for (const TestbedRecord& record : chosen) names += (names.empty() ? "" : ", ") + record.name;
    throw InputError(fmt::format("there are several testbeds, name one or say --all: {}", names));
  }
  std::string text;
  for (const TestbedRecord& record : chosen) text += describe(end_testbed(record, registry));
  if (chosen.empty())
    text = options.name.empty() ? "no testbed is there\n" : fmt::format("{}: not there\n", options.name);
  write_result(text);
  return ExitStatus::kDone;
}

int status(const TestbedOptions& options) {
  const Registry registry = Registry::of_user();
  std::vector<TestbedRecord> records;
  if (options.name.empty()) {
    records = registry.list();
  } else {
    records.push_back(TestbedHandle::find(options.name, registry).record());
  }
  write_result(options.format == "json" ? testbeds_as_json(records) : testbeds_as_text(records));
  return ExitStatus::kDone;
}

int execute(const TestbedOptions& options) {
  const TestbedHandle handle = TestbedHandle::find(options.name);
  const NodeId host = handle.host(options.host);
  std::vector<std::string> words = options.command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  handle.enter(host);
  std::signal(SIGPIPE, SIG_DFL);  // which the tool ignores, but a command need not
  execvp(arguments.front(), arguments.data());
  throw InputError(fmt::format("cannot run {}: {}", words.front(), std::strerror(errno)));
}

}  // namespace

CLI::App* add_testbed(CLI::App& app, TestbedOptions& options) {
  CLI::App* testbed =
      app.add_subcommand("testbed", "Build networks out of namespaces on this machine, to run workers on");
  testbed->group("Verbs");
  testbed->require_subcommand(1);
  add_up(*testbed, options);
  CLI::App* down = add_verb(*testbed, options, "down", "End a testbed and all processes in it");
  CLI::Option* all = down->add_flag("--all", options.all, "End all testbeds");
  down->add_option("NAME", options.name, "End this testbed (default: the only one)")->excludes(all);
  CLI::App* status = add_verb(*testbed, options, "status", "Show testbeds, their hosts, and what their links carry");
  status->add_option("NAME", options.name, "Show this testbed alone (default: all)");
  add_choice(*status, "--format", options.format, {"text", "json"},
             "Print text for people (default) or json for programs");
  CLI::App* exec = add_verb(*testbed, options, "exec", "Run a command in a host: exec a0 -- COMMAND ...");
  add_name(*exec, options);
  exec->add_option("HOST", options.host, "Run it in this host, as the topology names it")->required();
  exec->add_option("COMMAND", options.command, "Run this command with its arguments, after --")->required();
  add_contend(*testbed, options);
  return testbed;
}

int run_testbed(const TestbedOptions& options) {
  const std::map<std::string, int (*)(const TestbedOptions&)> verbs = {
      {"up", up}, {"down", down}, {"status", status}, {"exec", execute}, {"contend", contend}};
  return verbs.at(options.verb)(options);
}

}  // namespace dssync::cli
