// Layered averages: the same bits as in line, whatever the program does to its gradients and between its iterations.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;

// Groups of one to four; shards that end within layers. Predicted to be slow, so that there are many buckets.
Plan plan_with_groups(int workers) {
  Plan plan;
  if (workers == 2) plan.rounds = {{"pair", {{0, 1}}}, {"nobody", {{0}, {1}}}};
  if (workers == 3) plan.rounds = {{"all", {{0, 1, 2}}}, {"pair", {{0, 2}, {1}}}};
  if (workers == 4) {
    plan.rounds = {{"pairs", {{0, 1}, {2, 3}}}, {"three", {{1, 2, 3}, {0}}}, {"all", {{0, 1, 2, 3}}}};
  }
  plan.shards = 3;
  plan.mixing = measure_mixing(plan.rounds, workers);
  plan.cost.seconds_per_iteration = 1;
  return plan;
}

struct LayersImpl : torch::nn::Module {
  LayersImpl() {
    for (const auto& [from, to] : std::vector<std::pair<int, int>>{{11, 40}, {40, 30}, {30, 20}, {20, 50}, {50, 3}}) {
      layers.push_back(register_module("layer" + std::to_string(layers.size()), torch::nn::Linear(from, to)));
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor& values : parameters()) {
      values.copy_(at::sin(at::arange(values.numel(), at::kFloat)).view(values.sizes()) * 0.3);
    }
  }

  at::Tensor forward(at::Tensor x, const std::function<void(torch::nn::Linear&)>& before) {
    for (torch::nn::Linear& layer : layers) {
      before(layer);
      x = at::tanh(layer(x));
    }
    return x;
  }

  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Layers);

at::Tensor inputs_of(int rank, int iteration) {
  return at::sin(at::arange(88, at::kFloat).view({8, 11}) * 1.7 + rank * 2.3 + iteration);
}

std::unique_ptr<torch::optim::Optimizer> optimizer_named(const std::string& name, torch::nn::Module& model) {
  using torch::optim::AdamW;
  if (name == "adamw") return std::make_unique<AdamW>(model.parameters(), torch::optim::AdamWOptions(0.01));
  return std::make_unique<torch::optim::SGD>(model.parameters(), torch::optim::SGDOptions(0.005).momentum(0.9));
}

struct LayeredCase {
  std::string name;
  int workers = 4;
  std::string optimizer = "adamw";
  StateTreatment state = StateTreatment::kRotating;
  bool awaits = true;
  bool clips = false;
  int backward_passes = 1;
  bool is_interrupted = false;  // consolidates, saves and begins anew now and then
  Storage storage = Storage::kOwned;
};

struct LayeredResult {
  std::vector<at::Tensor> replicas;  // of every worker, before they are consolidated
  std::vector<int> early_steps;      // that the synchronizer made
};

// One worker and what it trains.
class LayeredWorker {
 public:
  LayeredWorker(World& world, const LayeredCase& setting, Overlap overlap)
      : world_(world), setting_(setting), optimizer_(optimizer_named(setting.optimizer, *model_)) {
    options_.plan = plan_with_groups(setting.workers);
    options_.overlap = overlap;
    options_.state = setting.state;
    options_.state_period = 3;
    replica_ = replica_of(*model_, *optimizer_);
    replica_.storage = setting.storage;
    replica_.step = [this, step = replica_.step](const std::vector<std::size_t>& parameters) {
      ++early_steps_;
      step(parameters);
    };
    make_sync();
  }

  void iterate(int iteration) {
    sync_->before_forward();
    for (int pass = 0; pass < setting_.backward_passes; ++pass) {
      const auto await = [this](torch::nn::Linear& layer) {
        if (setting_.awaits) sync_->await(layer->parameters());
      };
      const at::Tensor scores = model_->forward(inputs_of(world_.rank() + 10 * pass, iteration), await);
      const Clock::time_point start = Clock::now();
      (scores - (0.1 * world_.rank() + 0.2)).square().sum().backward();
      waits_in_backward_ = waits_since(start);
    }
    sync_->after_backward();
    if (setting_.clips) sync_->clip_gradients(0.5);
    optimizer_->step();
    sync_->after_step();
    optimizer_->zero_grad();
    if (setting_.is_interrupted && iteration % 7 == 5) sync_->consolidate();
    if (setting_.is_interrupted && iteration % 11 == 8) begin_anew();
  }

  at::Tensor values() {
    sync_->settle();
    return flattened();
  }

  int early_steps() const { return early_steps_; }
  // Of the last iteration: how often the backward pass waited for averages.
  std::int64_t waits_in_backward() const { return waits_in_backward_; }

 private:
  void make_sync() {
    sync_ = make_synchronizer(world_, replica_, testing::flat(setting_.workers, 1e6), options_, &timeline_);
  }

  std::int64_t waits_since(Clock::time_point start) const {
    const std::vector<Span> spans = timeline_.spans();
    return std::count_if(spans.begin(), spans.end(), [start](const Span& span) {
      return span.kind == Span::Kind::kWait && span.start >= start;
    });
  }

  at::Tensor flattened() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model_->parameters()) all.push_back(parameter.detach().flatten());
    return at::cat(all).clone();
  }

  // As from a checkpoint; the optimizer keeps its state.
  void begin_anew() {
    const SyncState state = sync_->state();
    const at::Tensor values = flattened();
    sync_.reset();
    make_sync();
    const at::NoGradGuard no_grad;
    std::int64_t begin = 0;
    for (at::Tensor& parameter : model_->parameters()) {
      parameter.copy_(values.narrow(0, begin, parameter.numel()).view(parameter.sizes()));
      begin += parameter.numel();
    }
    sync_->load_state(state);
  }

  World& world_;
  const LayeredCase setting_;
  Layers model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  SyncOptions options_;
  Replica replica_;
  Timeline timeline_;
  std::unique_ptr<Synchronizer> sync_;
  int early_steps_ = 0;
  std::int64_t waits_in_backward_ = 0;
};

LayeredResult train_layered(const LayeredCase& setting, Overlap overlap) {
  const auto workers = static_cast<std::size_t>(setting.workers);
  LayeredResult result{std::vector<at::Tensor>(workers), std::vector<int>(workers)};
  run_ranks(setting.workers, [&](World& world) {
    LayeredWorker worker(world, setting, overlap);
    for (int iteration = 0; iteration < 50; ++iteration) worker.iterate(iteration);
    result.replicas[static_cast<std::size_t>(world.rank())] = worker.values();
    result.early_steps[static_cast<std::size_t>(world.rank())] = worker.early_steps();
  });
  return result;
}

class LayeredTest : public ::testing::TestWithParam<LayeredCase> {};

TEST_P(LayeredTest, LeavesTheBitsOfInLine) {
  const LayeredCase& setting = GetParam();
  const LayeredResult in_line = train_layered(setting, Overlap::kInLine);
  const LayeredResult layered = train_layered(setting, Overlap::kLayered);
  const bool steps_early = !setting.clips && setting.backward_passes == 1;
  for (std::size_t rank = 0; rank < in_line.replicas.size(); ++rank) {
    EXPECT_TRUE(at::isfinite(in_line.replicas[rank]).all().item<bool>());
    EXPECT_TRUE(at::equal(layered.replicas[rank], in_line.replicas[rank])) << "rank " << rank;
    EXPECT_EQ(in_line.early_steps[rank], 0);
    EXPECT_EQ(layered.early_steps[rank] > 0, steps_early) << layered.early_steps[rank];
  }
  EXPECT_FALSE(at::equal(layered.replicas[0], layered.replicas[1])) << "there is something to average";
}

std::vector<LayeredCase> layered_cases() {
  return {{.name = "TwoSgd", .workers = 2, .optimizer = "sgd"},
          {.name = "TwoAdamW", .workers = 2},
          {.name = "ThreeSgd", .workers = 3, .optimizer = "sgd"},
          {.name = "ThreeAdamW", .workers = 3},
          {.name = "FourSgd", .optimizer = "sgd"},
          {.name = "FourAdamW"},
          {.name = "StateAveraged", .state = StateTreatment::kAveraged},
          {.name = "StateLocal", .optimizer = "sgd", .state = StateTreatment::kLocal},
          {.name = "NobodyAwaits", .awaits = false},
          {.name = "Clipped", .clips = true},
          {.name = "TwoBackwardPasses", .backward_passes = 2},
          {.name = "Interrupted", .is_interrupted = true},
          {.name = "InterruptedSgd", .optimizer = "sgd", .is_interrupted = true},
          {.name = "Borrowed", .storage = Storage::kBorrowed}};
}

INSTANTIATE_TEST_SUITE_P(All, LayeredTest, ::testing::ValuesIn(layered_cases()),
                         [](const auto& setting) { return setting.param.name; });

// Each bucket's average goes on while the next bucket is stepped, and all are awaited by the next forward pass.
TEST(LayeredWaitTest, TheBackwardPassWaitsForNothing) {
  run_ranks(4, [](World& world) {
    LayeredWorker worker(world, {.name = "", .optimizer = "sgd"}, Overlap::kLayered);
    for (int iteration = 0; iteration < 6; ++iteration) worker.iterate(iteration);
    EXPECT_GT(worker.early_steps(), 3) << "several buckets in each of the last iterations";
    EXPECT_EQ(worker.waits_in_backward(), 0);
  });
}

// A worker leaves: what it was to be averaged with is void, and its partners keep their own steps.
TEST(LayeredFailureTest, AVoidAverageLeavesTheLocalStep) {
  SyncOptions options;
  options.plan = plan_with_groups(3);
  options.overlap = Overlap::kLayered;
  run_ranks(3, [&](World& world) {
    const at::Tensor x = at::zeros({100'000});
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::flat(3), options);
    if (world.rank() == 1) return world.report_failure("no more memory");
    sync->before_forward();
    sync->after_backward();
    x.add_(world.rank() + 1);
    sync->after_step();
    const std::string message = testing::message_of<PeerError>([&] { sync->await({x}); });
    EXPECT_THAT(message, HasSubstr("no more memory"));
    EXPECT_TRUE(at::equal(x, at::full({100'000}, world.rank() + 1.0))) << x;
  });
}

// One parameter, stepped early from the fourth iteration on.
class EarlyStepTest : public ::testing::Test {
 protected:
  void run(const std::function<void(Synchronizer& sync, at::Tensor x, int iteration)>& between) {
    run_ranks(1, [&](World& world) {
      at::Tensor x = at::ones({4}).requires_grad_();
      torch::optim::SGD optimizer({x}, 0.1);
      Replica replica{{{"x", x}}, {}, {}};
      replica.step = [&](const std::vector<std::size_t>& chosen) {
        step_only(replica.parameters, chosen, [&] { optimizer.step(); });
      };
      SyncOptions options;
      options.overlap = Overlap::kLayered;
      const auto sync = make_synchronizer(world, replica, testing::flat(1), options);
      for (int iteration = 0; iteration < 6; ++iteration) {
        sync->before_forward();
        x.square().sum().backward();
        between(*sync, x, iteration);
        sync->after_backward();
        optimizer.step();
        sync->after_step();
        optimizer.zero_grad();
      }
    });
  }
};

TEST_F(EarlyStepTest, IsSeenRightAfterTheGradient) {
  std::vector<double> seen;
  run([&](Synchronizer&, const at::Tensor& x, int) { seen.push_back(x.mean().item<double>()); });
  ASSERT_EQ(seen.size(), 6U);
  EXPECT_NEAR(seen[2], std::pow(0.8, 2), 1e-6) << "the step comes after the backward pass";
  EXPECT_NEAR(seen[3], std::pow(0.8, 4), 1e-6) << "the step has been made";
}

TEST_F(EarlyStepTest, GradientsThatAreNeededLaterAreAnError) {
  using Use = std::function<void(Synchronizer&, const at::Tensor&)>;
  const auto clip = [](Synchronizer& sync, const at::Tensor&) { sync.clip_gradients(1); };
  const auto add = [](Synchronizer&, const at::Tensor& x) { x.square().sum().backward(); };
  for (const auto& [use, what] : std::vector<std::pair<Use, std::string>>{
           {clip, "gradients are needed after"}, {add, "the gradient of 'x' changed after"}}) {
    const std::string message = testing::message_of<Error>([&, &use = use] {
      run([&](Synchronizer& sync, const at::Tensor& x, int iteration) {
        if (iteration == 4) use(sync, x);
      });
    });
    EXPECT_THAT(message, HasSubstr(what));
  }
}

}  // namespace
}  // namespace dssync
