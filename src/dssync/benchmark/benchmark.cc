#include "dssync/benchmark/benchmark.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include "dssync/benchmark/cpu_time.h"
#include "dssync/method/cost.h"
#include "dssync/training/exchange.h"
#include "dssync/training/pace.h"
#include "dssync/training/threads.h"
#include "dssync/training/trace_file.h"

namespace dssync {
namespace {

constexpr std::int64_t kLayers = 16;
constexpr int kWarmUp = 3;              // iterations of each method
constexpr std::size_t kSpans = 20'000;  // that each worker keeps: the first ones

// Parameters of a given size in equal layers. Its gradients appear from the last layer to the first.
class LayeredModel : public torch::nn::Module {
 public:
  explicit LayeredModel(std::int64_t elements) {
    const std::int64_t layer = std::max<std::int64_t>(1, (elements + kLayers - 1) / kLayers);
    for (std::int64_t start = 0; start < elements; start += layer) {
      const std::string name = fmt::format("layer{}", layers_.size());
      layers_.push_back(register_parameter(name, at::zeros({std::min(layer, elements - start)})));
    }
  }

  // `before` gets each layer's number and parameter.
  template <typename BeforeLayer>
  at::Tensor forward(BeforeLayer before) const {
    at::Tensor sum = at::zeros({});
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      before(index, layers_[index]);
      sum = sum + layers_[index].sum();
    }
    return sum;
  }

  std::size_t layers() const { return layers_.size(); }

  std::vector<NamedTensor> tensors() const {
    std::vector<NamedTensor> result;
    for (const auto& item : named_parameters()) result.push_back({item.key(), item.value()});
    return result;
  }

 private:
  std::vector<at::Tensor> layers_;
};

// One method with a model of its own.
class Contestant {
 public:
  Contestant(World& world, const Topology& topology, const BenchmarkOptions& options, const BenchmarkedMethod& method,
             Timeline* timeline)
      : model_(std::max<std::int64_t>(1, options.bytes / static_cast<std::int64_t>(sizeof(float)))),
        pace_(model_, options.compute),
        computes_(options.compute.count() > 0) {
    SyncOptions sync = options_of(method, options.sync);
    sync.compute = options.compute;
    Replica replica{model_.tensors(), {}, {}};
    replica.step = [](const std::vector<std::size_t>& /*parameters*/) {};  // there is nothing to learn
    sync_ = make_synchronizer(world, replica, topology, sync, timeline);
    sync.overlap = sync_->overlap();
    figures_.method = method;
    if (sync_->plan() != nullptr) figures_.plan = *sync_->plan();
    figures_.predicted = method_cost(sync.method, topology, static_cast<double>(options.bytes),
                                     figures_.plan ? &*figures_.plan : nullptr, sync.codec_choice());
    figures_.predicted_seconds =
        iteration_seconds(sync, figures_.predicted, options.compute, figures_.plan ? figures_.plan->inside : Cost());
    // Iterations of a cycle differ, unless its shards take part in all of its rounds at once.
    const int cycle = figures_.plan ? static_cast<int>(figures_.plan->rounds.size()) : 1;
    figures_.iterations = (options.iterations + cycle - 1) / cycle * cycle;
  }

  MethodFigures& figures() { return figures_; }

  void iterate() {
    sync_->before_forward();
    if (computes_) compute();
    sync_->after_backward();
    sync_->after_step();
  }

  // The averages of the last iteration belong to it.
  void settle() { sync_->settle(); }

 private:
  void compute() {
    pace_.begin();
    const at::Tensor loss = model_.forward([this](std::size_t layer, const at::Tensor& parameter) {
      pace_.layers_done(layer, model_.layers());
      const Clock::time_point start = Clock::now();
      sync_->await(parameter);
      pace_.exclude(Clock::now() - start);
    });
    pace_.forward_done();
    loss.backward();
    pace_.backward_done();
  }

  LayeredModel model_;
  Pace pace_;
  const bool computes_;
  std::unique_ptr<Synchronizer> sync_;
  MethodFigures figures_;
};

// All workers go on together, with the largest of their values.
class Meeting {
 public:
  explicit Meeting(World& world) : world_(world), channel_(world.channel(world.everyone(), "benchmark")) {}

  double largest(double value) {
    if (world_.size() == 1) return value;
    std::vector<at::Tensor> tensors = {at::full({1}, value, at::kDouble)};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    try {
      channel_->allreduce(tensors, options)->wait();
    } catch (const std::exception& error) {
      throw world_.explain("meeting after a block of iterations", world_.everyone(), error.what());
    }
    return tensors.front().item<double>();
  }

 private:
  World& world_;
  Channel channel_;
};

class Benchmark {
 public:
  Benchmark(World& world, const Topology& topology, const BenchmarkOptions& options, const LinkCounter& count,
            Timeline* timeline)
      : meeting_(world), count_(world.rank() == 0 ? count : nullptr) {
    for (const BenchmarkedMethod& method : options.methods) {
      contestants_.push_back(std::make_unique<Contestant>(world, topology, options, method, timeline));
    }
  }

  // Connections are new, and TCP has yet to find out how fast they are.
  void warm_up() {
    for (const auto& contestant : contestants_) {
      meeting_.largest(0);
      for (int i = 0; i < std::min(contestant->figures().iterations, kWarmUp); ++i) contestant->iterate();
    }
  }

  void run_blocks(const BenchmarkWatcher& watcher) {
    for (const auto& contestant : contestants_) run_block(*contestant, watcher);
  }

  std::vector<MethodFigures> figures() const {
    std::vector<MethodFigures> result;
    for (const auto& contestant : contestants_) result.push_back(contestant->figures());
    return result;
  }

 private:
  void run_block(Contestant& contestant, const BenchmarkWatcher& watcher) {
    MethodFigures& figures = contestant.figures();
    meeting_.largest(0);
    const std::vector<std::uint64_t> before = count_ ? count_() : std::vector<std::uint64_t>{};
    meeting_.largest(0);
    const CpuTime cpu_before = cpu_time_now();
    const Clock::time_point start = Clock::now();
    for (int i = 1; i <= figures.iterations; ++i) {
      contestant.iterate();
      if (watcher.iterated) watcher.iterated(figures, i);
    }
    contestant.settle();
    const double mine = std::chrono::duration<double>(Clock::now() - start).count();
    figures.seconds.push_back(meeting_.largest(mine) / figures.iterations);
    const auto blocks = static_cast<double>(figures.seconds.size());
    figures.cpu_share += (busy_share(cpu_before, cpu_time_now()) - figures.cpu_share) / blocks;
    if (count_) add_bytes(figures, before, count_());
  }

  // Keeps the mean of all blocks.
  static void add_bytes(MethodFigures& figures, const std::vector<std::uint64_t>& before,
                        const std::vector<std::uint64_t>& after) {
    figures.bytes.resize(after.size());
    const auto blocks = static_cast<double>(figures.seconds.size());
    for (std::size_t link = 0; link < after.size(); ++link) {
      const double bytes = static_cast<double>(after[link] - before[link]) / figures.iterations;
      figures.bytes[link] += (bytes - figures.bytes[link]) / blocks;
    }
  }

  Meeting meeting_;
  const LinkCounter count_;
  std::vector<std::unique_ptr<Contestant>> contestants_;
};

}  // namespace

std::string name_of(const BenchmarkedMethod& method) {
  const std::string name = name_of(method.method);
  return method.codec ? fmt::format("{}:{}", name, name_of(*method.codec)) : name;
}

BenchmarkedMethod benchmarked_method_from_name(const std::string& name) {
  const std::size_t colon = name.find(':');
  BenchmarkedMethod result{method_from_name(name.substr(0, colon))};
  if (colon != std::string::npos) result.codec = CodecChoice{codec_choice_from_name(name.substr(colon + 1))};
  return result;
}

SyncOptions options_of(const BenchmarkedMethod& method, SyncOptions options) {
  options.method = method.method;
  if (method.codec) options.codec = method.codec;
  return options;
}

double predicted_total(const std::vector<MethodFigures>& methods, int repeats) {
  double seconds = 0;
  for (const MethodFigures& method : methods) {
    const int iterations = method.iterations * repeats + std::min(method.iterations, kWarmUp);
    seconds += method.predicted_seconds * iterations;
  }
  return seconds;
}

std::vector<MethodFigures> run_benchmark(World& world, const Topology& topology, const BenchmarkOptions& options,
                                         const LinkCounter& count, const BenchmarkWatcher& watcher) {
  use_threads(1);
  Exchange exchange(world);
  const bool is_traced = !options.trace.empty();
  const Clock::time_point origin = is_traced ? common_origin(exchange) : Clock::time_point();
  Timeline timeline(kSpans);
  Benchmark benchmark(world, topology, options, count, is_traced ? &timeline : nullptr);
  if (watcher.begins) watcher.begins(benchmark.figures());
  benchmark.warm_up();
  for (int repeat = 0; repeat < options.repeats; ++repeat) benchmark.run_blocks(watcher);
  if (is_traced) write_trace(exchange, world.rank(), timeline, origin, options.trace);
  return benchmark.figures();
}

}  // namespace dssync
