// All that `dssync bench` has to tell, written as JSON or as text. Plain values.
#pragma once

#include <string>
#include <vector>

#include "dssync/benchmark/benchmark.h"
#include "text/style.h"

namespace dssync::cli {

struct BenchReport {
  std::string source;     // of the topology
  bool emulated = false;  // on a testbed: only there do predictions mean what is measured
  BenchmarkOptions options;
  std::vector<MethodFigures> methods;
};

// Of the blocks of a method, in seconds per iteration.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
Spread spread_of(std::vector<double> seconds);

// The link that was busiest, as counted: its part of the capacity in use throughout the blocks.
struct LinkShare {
  LinkId link = kNone;
  double share = 0;
};
LinkShare busiest_link(const MethodFigures& method, const Topology& topology);

// How much of a link's capacity was in use; REQUIRES: method.bytes is not empty.
double share_of(const MethodFigures& method, const Topology& topology, LinkId link);

std::string bench_as_json(const BenchReport& report, const Topology& topology);
std::string bench_as_text(const BenchReport& report, const Topology& topology, const Style& style);

}  // namespace dssync::cli
