// What the library adds to bare c10d, what codecs cost where the network is fast, and what overlapping hides. Workers
// are threads of this process, connected over loopback; methods alternate, and figures are ratios within one run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "dssync/collective/engine.h"
#include "dssync/collective/program/chain.h"
#include "dssync/comm/testing.h"
#include "dssync/planner/codecs.h"
#include "dssync/planner/stages.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace {

using dssync::Clock;
using dssync::World;

constexpr std::int64_t kElements = 2'000'000;  // 8 MB

double seconds_of(const std::function<void()>& action) {
  const Clock::time_point start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

std::string summary(const std::vector<double>& values, double scale) {
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", scale * quantile(values, 0.5), scale * quantile(values, 0.25),
                     scale * quantile(values, 0.75));
}

// One average of 8 MB through the engine against one bare all-reduce in the same process group.
void compare_with_bare_c10d(int workers) {
  constexpr int kRepeats = 300;
  std::vector<double> bare;
  std::vector<double> divided;  // the same, and then the division that makes an average of the sum
  std::vector<double> ours;
  dssync::testing::run_ranks(workers, [&](World& world) {
    at::set_num_threads(1);
    const dssync::Topology topology = dssync::testing::flat(workers);
    dssync::Group group;
    for (dssync::Rank rank = 0; rank < workers; ++rank) group.push_back(rank);
    dssync::ChainBuilder builder(world, topology);
    builder.add(dssync::lower_to_ring(group, topology), workers);
    const auto chain = std::make_shared<const dssync::Chain>(builder.build().front());
    const dssync::Channel channel = chain->phases.front().front().channel;
    dssync::Engine engine(dssync::explained_by(world), nullptr);
    const at::Tensor vector = at::ones({kElements});
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      world.barrier(fmt::format("bare {} {}", workers, repeat));
      const double without = seconds_of([&] {
        std::vector<at::Tensor> tensors = {vector};
        channel->allreduce(tensors)->wait();
      });
      const double division = seconds_of([&] { vector.div_(workers); });
      world.barrier(fmt::format("ours {} {}", workers, repeat));
      const double with = seconds_of([&] {
        engine.average(vector, chain, repeat, dssync::Seconds(0));
        dssync::require_done(engine.wait());
      });
      if (world.rank() != 0 || repeat < 5) continue;
      bare.push_back(without);
      divided.push_back(without + division);
      ours.push_back(with);
    }
  });
  fmt::print(
      "{} workers: bare all-reduce {} ms, with a division {} ms, average through the library {} ms, {:.3f} and "
      "{:.3f} times\n",
      workers, summary(bare, 1e3), summary(divided, 1e3), summary(ours, 1e3), quantile(ours, 0.5) / quantile(bare, 0.5),
      quantile(ours, 0.5) / quantile(divided, 0.5));
}

// One average of 8 MB with each codec, against float32.
void compare_codecs(int workers) {
  constexpr int kRepeats = 100;
  std::vector<std::vector<double>> seconds(dssync::all_codecs().size());
  dssync::testing::run_ranks(workers, [&](World& world) {
    at::set_num_threads(1);
    const dssync::Topology topology = dssync::testing::flat(workers);
    dssync::Group group;
    for (dssync::Rank rank = 0; rank < workers; ++rank) group.push_back(rank);
    dssync::ChainBuilder builder(world, topology);
    for (const dssync::Codec codec : dssync::all_codecs()) {
      const dssync::Lowering ring = dssync::lower_to_ring(group, topology);
      builder.add(dssync::encoded(ring, topology, dssync::Codecs(codec)), workers);
    }
    std::vector<std::shared_ptr<const dssync::Chain>> chains;
    for (dssync::Chain& chain : builder.build()) {
      chains.push_back(std::make_shared<const dssync::Chain>(std::move(chain)));
    }
    dssync::Engine engine(dssync::explained_by(world), nullptr);
    const at::Tensor noise = at::randn({kElements});
    at::Tensor vector = noise.clone();
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (std::size_t codec = 0; codec < chains.size(); ++codec) {
        vector.copy_(noise);
        world.barrier(fmt::format("codec {} {} {}", workers, repeat, codec));
        const double taken = seconds_of([&] {
          engine.average(vector, chains[codec], repeat, dssync::Seconds(0));
          dssync::require_done(engine.wait());
        });
        if (world.rank() == 0 && repeat >= 5) seconds[codec].push_back(taken);
      }
    }
  });
  for (std::size_t codec = 0; codec < seconds.size(); ++codec) {
    fmt::print("{} workers, {}: {} ms, {:.3f} times float32\n", workers, dssync::name_of(dssync::all_codecs()[codec]),
               summary(seconds[codec], 1e3), quantile(seconds[codec], 0.5) / quantile(seconds[0], 0.5));
  }
}

// Iterations of 100 ms of computing (asleep, as if on an accelerator) with ds-sync. Layered averages need a backward
// pass: `dssync bench` measures them.
void measure_overlap(int workers, dssync::Overlap overlap) {
  constexpr int kIterations = 30;
  constexpr std::chrono::milliseconds kCompute(100);
  std::vector<double> iterations;
  double seconds_in_sync = 0;
  dssync::testing::run_ranks(workers, [&](World& world) {
    at::set_num_threads(1);
    const at::Tensor x = at::ones({kElements});
    dssync::SyncOptions options;
    options.overlap = overlap;
    // The same plan for both: averages that combine miss a step, which counts.
    if (overlap == dssync::Overlap::kCombine) options.disagreement += 1 - 1.0 / workers;
    const auto sync = dssync::make_synchronizer(world, {{{"x", x}}, {}, {}}, dssync::testing::flat(workers), options);
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      const double seconds = seconds_of([&] {
        sync->before_forward();
        std::this_thread::sleep_for(kCompute);
        sync->after_backward();
        sync->after_step();
      });
      if (world.rank() != 0 || iteration < 3) continue;
      iterations.push_back(seconds / std::chrono::duration<double>(kCompute).count());
      seconds_in_sync += sync->metrics().sync_seconds / (kIterations - 3);
    }
  });
  fmt::print("{} workers, {}: an iteration takes {} times its computing; {:.1f} ms of it in the synchronizer\n",
             workers, overlap == dssync::Overlap::kCombine ? "combined" : "in line", summary(iterations, 1),
             1e3 * seconds_in_sync);
}

}  // namespace

int main() {
  fmt::print("medians (quartiles); 8 MB of float32\n");
  for (const int workers : {2, 4}) compare_with_bare_c10d(workers);
  for (const int workers : {2, 4}) compare_codecs(workers);
  for (const int workers : {2, 4}) {
    measure_overlap(workers, dssync::Overlap::kInLine);
    measure_overlap(workers, dssync::Overlap::kCombine);
  }
}
