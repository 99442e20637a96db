// The verb `bench`: what its flags mean. bench_run.h carries it out.
#pragma once

#include <string>

#include "dssync/benchmark/benchmark.h"
#include "flags/network_flags.h"
#include "flags/sync_flags.h"

namespace CLI {
class App;
}

namespace dssync::cli {

struct BenchCommand {
  NetworkFlags network;
  std::string methods = "bsp-ring,bsp-hierarchical,ds-sync";
  SyncOptions sync;
  BenchmarkOptions benchmark;  // `sync` aside, until resolve_flags()
  std::string format = "text";
  std::string color = "auto";
};

// Declares the flags; parsing fills `command`. A bad value throws InputError.
void add_bench_flags(CLI::App& app, BenchCommand& command);

// After parsing: names become values. Throws InputError where flags do not go together.
void resolve_flags(const CLI::App& app, BenchCommand& command);

}  // namespace dssync::cli
