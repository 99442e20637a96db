// What following a network costs where contention comes and goes: 40 simulated waves on two racks, each beside both
// static plans. To try changes of the monitor and the policy with other seeds than their tests have.
//
//     waves_bench [first seed, default 101] [seeds, default 2]
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dssync/monitor/testing.h"

namespace dssync {
namespace {

using testing::AdaptiveRun;
using testing::two_racks;

constexpr double kStart = 4;     // seconds before the first contention
constexpr double kLength = 120;  // seconds

struct Wave {
  double quiet_core;  // Mbit/s
  double contended_core;
  double megabytes;
  double contended;  // seconds
  double quiet;
};

std::vector<Wave> waves() {
  std::vector<Wave> result;
  for (const auto& [off, on] : {std::pair(50.0, 25.0), {50.0, 12.5}, {200.0, 25.0}, {200.0, 50.0}}) {
    for (const double megabytes : {2.0, 8.0}) {
      for (const auto& [contended, quiet] :
           {std::pair(5.0, 5.0), {10.0, 10.0}, {20.0, 20.0}, {3.0, 12.0}, {12.0, 3.0}}) {
        result.push_back({off, on, megabytes, contended, quiet});
      }
    }
  }
  return result;
}

// Rougher than in the tests: operations take longer, and so do changes.
AdaptiveRun::Options options_of(const Wave& wave, unsigned seed, bool adapts) {
  AdaptiveRun::Options options;
  options.simulation.seed = seed;
  options.simulation.noise = 0.05;
  options.simulation.lost = 0.01;
  options.simulation.operation_seconds = 0.004;
  options.switch_delay = 4;
  options.bytes = wave.megabytes * 1e6;
  options.adapts = adapts;
  return options;
}

struct Outcome {
  double seconds;  // of an iteration, on average
  int changes;
};

Outcome run(const Wave& wave, double planned_core, const AdaptiveRun::Options& options) {
  AdaptiveRun run(two_racks(planned_core), options);
  for (double time = kStart; time < kStart + kLength; time += wave.contended + wave.quiet) {
    run.simulation.change_network(time, two_racks(wave.contended_core));
    run.simulation.change_network(time + wave.contended, two_racks(wave.quiet_core));
  }
  run.run_until(kStart);
  const double start = run.simulation.now();
  const auto first = run.iteration;
  run.run_until(kStart + kLength);
  return {(run.simulation.now() - start) / static_cast<double>(run.iteration - first), run.policy.changes()};
}

void measure(unsigned first_seed, unsigned seeds) {
  double sum = 0;
  double most_of_all = 0;
  const std::vector<Wave> all = waves();
  fmt::print("time per iteration, in times of the better static plan\n");
  for (const Wave& wave : all) {
    double mean = 0;
    double most = 0;
    int changes = 0;
    for (unsigned seed = first_seed; seed < first_seed + seeds; ++seed) {
      const Outcome adapting = run(wave, wave.quiet_core, options_of(wave, seed, true));
      const double better = std::min(run(wave, wave.quiet_core, options_of(wave, seed, false)).seconds,
                                     run(wave, wave.contended_core, options_of(wave, seed, false)).seconds);
      mean += adapting.seconds / better / seeds;
      most = std::max(most, adapting.seconds / better);
      changes = std::max(changes, adapting.changes);
    }
    fmt::print("core {} for {} s, {} for {} s, {} MB: {:.3f}, at worst {:.3f}; at most {} changes\n",
               wave.contended_core, wave.contended, wave.quiet_core, wave.quiet, wave.megabytes, mean, most, changes);
    sum += mean;
    most_of_all = std::max(most_of_all, most);
  }
  fmt::print("all: {:.3f}, at worst {:.3f}\n", sum / static_cast<double>(all.size()), most_of_all);
}

}  // namespace
}  // namespace dssync

int main(int count, char** words) {
  const auto number = [&](int place, unsigned otherwise) {
    return count > place ? static_cast<unsigned>(std::strtoul(words[place], nullptr, 10)) : otherwise;
  };
  dssync::measure(number(1, 101), number(2, 2));
}
