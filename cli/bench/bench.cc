#include "bench/bench.h"

#include <algorithm>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "flags/flags.h"

namespace dssync::cli {
namespace {

constexpr const char* kMeasuringGroup = "Measuring";
constexpr const char* kBenchOutputGroup = "Output";

std::vector<BenchmarkedMethod> parse_methods(const std::string& text) {
  std::vector<BenchmarkedMethod> methods;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const BenchmarkedMethod method = benchmarked_method_from_name(name);
    if (std::find(methods.begin(), methods.end(), method) != methods.end()) {
      throw InputError(fmt::format("{} stands there twice", name));
    }
    methods.push_back(method);
  }
  if (methods.empty()) throw InputError("expected names separated by commas, but found ''");
  return methods;
}

}  // namespace

void add_bench_flags(CLI::App& app, BenchCommand& command) {
  BenchmarkOptions& benchmark = command.benchmark;
  add_network_flags(app, command.network, kWorkersGroup);
  app.add_option("--methods", command.methods,
                 fmt::format("Compare these methods, separated by commas: of {}; a method may carry its codec, as in "
                             "ds-sync:int4 (default {})",
                             fmt::join(method_names(), ", "), command.methods))
      ->type_name("NAMES")
      ->group(kMeasuringGroup);
  add_parsed(app, "--bytes", benchmark.bytes, parse_bytes, "Let every worker average so much, as float32 (default 8MB)")
      ->type_name("SIZE")
      ->group(kMeasuringGroup);
  add_parsed(
      app, "--iterations", benchmark.iterations, whole_number_from(1),
      fmt::format("Do N iterations in a block, or more to end a schedule's cycle (default {})", benchmark.iterations))
      ->type_name("N")
      ->group(kMeasuringGroup);
  add_parsed(app, "--repeats", benchmark.repeats, whole_number_from(1),
             fmt::format("Measure N blocks of each method; methods take turns (default {})", benchmark.repeats))
      ->type_name("N")
      ->group(kMeasuringGroup);
  add_parsed(app, "--compute", benchmark.compute, parse_duration,
             "Sleep so long in each iteration, as if an accelerator computed (default 0s)")
      ->type_name("TIME")
      ->group(kMeasuringGroup);
  add_sync_flags(app, command.sync, kMethodGroup, SyncVerb::kBench);
  add_parsed(app, "--trace", benchmark.trace, parse_path,
             "Write what happened when on every worker to FILE, for Perfetto or chrome://tracing")
      ->type_name("FILE")
      ->group(kBenchOutputGroup);
  add_output_flags(app, command.format, command.color);
  for (const char* flag : {"--format", "--color"}) app.get_option(flag)->group(kBenchOutputGroup);
}

void resolve_flags(const CLI::App& app, BenchCommand& command) {
  try {
    command.benchmark.methods = parse_methods(command.methods);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--methods: {}", error.what()));
  }
  std::vector<Method> methods;
  for (const BenchmarkedMethod& method : command.benchmark.methods) {
    methods.push_back(method.method);
    check(options_of(method, command.sync));
  }
  complete_sync_options(app, command.sync, methods);
  command.benchmark.sync = command.sync;
  // What is measured is one vector; an optimizer's state would come on top of it.
  command.benchmark.sync.state = StateTreatment::kLocal;
}

}  // namespace dssync::cli
