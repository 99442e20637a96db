// Exact regions: their workers stay equal to the bit, and the plan's averages go between them.
#include "dssync/planner/exact_inside.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "dssync/base/error.h"
#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/levels.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using ::testing::HasSubstr;
using testing::run_ranks;

at::Tensor examples_of(int rank, std::int64_t iteration) {
  const at::Tensor position = at::arange(48, at::kFloat).view({8, 6});
  return at::sin(position * 1.1 + rank * 2.7 + static_cast<double>(iteration) * 0.7);
}

// A worker that trains a small layer.
class Student {
 public:
  Student(World& world, const Topology& topology, const SyncOptions& options, bool with_adam)
      : world_(world), layer_(torch::nn::LinearOptions(6, 40)) {
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : layer_->parameters()) {
        parameter.copy_(at::sin(at::arange(parameter.numel(), at::kFloat)).view(parameter.sizes()) * 0.5);
      }
    }
    if (with_adam) {
      optimizer_ = std::make_unique<torch::optim::AdamW>(layer_->parameters(), torch::optim::AdamWOptions(0.01));
    } else {
      optimizer_ =
          std::make_unique<torch::optim::SGD>(layer_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    }
    sync_ = make_synchronizer(world, replica_of(*layer_, *optimizer_), topology, options);
  }

  void learn() {
    const std::int64_t iteration = sync_->iteration();
    optimizer_->zero_grad();
    sync_->before_forward();
    layer_->forward(examples_of(world_.rank(), iteration)).square().mean().backward();
    sync_->after_backward();
    sync_->clip_gradients(0.5);
    optimizer_->step();
    sync_->after_step();
  }

  at::Tensor values() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : layer_->parameters()) all.push_back(parameter.detach().flatten());
    return at::cat(all).clone();
  }

  Synchronizer& sync() { return *sync_; }

 private:
  World& world_;
  torch::nn::Linear layer_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::unique_ptr<Synchronizer> sync_;
};

// Hosts with different numbers of workers in two racks: 3 and 1 in the one, 2 and 1 in the other.
Topology uneven_racks() {
  using testing::make_host;
  using testing::make_switch;
  return Topology::build({make_switch("core", "", 0), make_switch("a", "core", 1e6), make_switch("b", "core", 1e6)},
                         {make_host("a0", "a", 4e6, 3), make_host("a1", "a", 4e6), make_host("b0", "b", 4e6, 2),
                          make_host("b1", "b", 4e6)},
                         "uneven racks");
}

struct BitsSetting {
  std::string name;
  bool with_adam;
  Overlap overlap;
  std::string exact_inside;
  StateTreatment state = StateTreatment::kRotating;
};

class ExactInsideBitsTest : public ::testing::TestWithParam<BitsSetting> {};

TEST_P(ExactInsideBitsTest, WorkersOfARegionStayEqualBitByBit) {
  const BitsSetting& setting = GetParam();
  const Topology topology = uneven_racks();
  const int size = topology.workers();
  const double missed = setting.overlap == Overlap::kCombine ? 1 : 0;
  const SyncOptions options{.disagreement = 0.3 + missed,
                            .exact_inside = exact_inside_from_name(setting.exact_inside),
                            .overlap = setting.overlap,
                            .state = setting.state,
                            .state_period = 3,
                            .bucket_bytes = 300};
  const std::vector<Group> regions = places_at(topology, options.exact_inside.level);
  std::vector<at::Tensor> values(static_cast<std::size_t>(size));
  int differing = 0;
  run_ranks(size, [&](World& world) {
    Student student(world, topology, options, setting.with_adam);
    EXPECT_EQ(student.sync().replicas(), static_cast<int>(regions.size()));
    for (int iteration = 0; iteration < 200; ++iteration) {
      student.learn();
      student.sync().settle();
      values[static_cast<std::size_t>(world.rank())] = student.values();
      world.barrier("learned " + std::to_string(iteration));
      if (world.rank() == 0) {
        for (const Group& region : regions) {
          const at::Tensor& first = values[static_cast<std::size_t>(region.front())];
          for (const Rank rank : region) {
            EXPECT_TRUE(at::equal(values[static_cast<std::size_t>(rank)], first))
                << "rank " << rank << " at " << iteration;
          }
          differing += at::equal(first, values.front()) ? 0 : 1;
        }
      }
      world.barrier("compared " + std::to_string(iteration));
    }
    EXPECT_TRUE(at::isfinite(student.values()).all().item<bool>());
  });
  EXPECT_GT(differing, 20) << "regions never disagreed";
}

INSTANTIATE_TEST_SUITE_P(Settings, ExactInsideBitsTest,
                         ::testing::Values(BitsSetting{"sgd_racks", false, Overlap::kInLine, "rack"},
                                           BitsSetting{"sgd_racks_combined", false, Overlap::kCombine, "rack"},
                                           BitsSetting{"adamw_racks_layered", true, Overlap::kLayered, "rack"},
                                           BitsSetting{"adamw_hosts_averaged_state", true, Overlap::kInLine, "host",
                                                       StateTreatment::kAveraged},
                                           BitsSetting{"adamw_hosts_combined", true, Overlap::kCombine, "host"}),
                         [](const auto& setting) { return setting.param.name; });

// Steps in double precision: whatever the sizes of regions, those of every worker count for one N-th.
TEST(ExactInsideTest, EveryStepCountsForOneNth) {
  constexpr std::int64_t kSize = 101;
  constexpr int kIterationsOfRegions = 7;
  const auto gradient_of = [](int rank, int iteration) {
    return at::sin(at::arange(kSize, at::kDouble) * 0.9 + rank * 1.7 + iteration * 2.3);
  };
  const Topology topology = uneven_racks();
  for (const char* level : {"host", "rack", "site"}) {
    run_ranks(topology.workers(), [&](World& world) {
      const SyncOptions options{.exact_inside = exact_inside_from_name(level), .bucket_bytes = 100};
      at::Tensor x = at::zeros({kSize}, at::kDouble).requires_grad_();
      const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, options);
      const at::NoGradGuard no_grad;
      for (int iteration = 0; iteration < kIterationsOfRegions; ++iteration) {
        sync->before_forward();
        x.mutable_grad() = gradient_of(world.rank(), iteration);
        sync->after_backward();
        x.add_(x.grad());
        sync->after_step();
      }
      sync->consolidate();
      at::Tensor expected = at::zeros({kSize}, at::kDouble);
      for (int rank = 0; rank < topology.workers(); ++rank) {
        for (int iteration = 0; iteration < kIterationsOfRegions; ++iteration) expected += gradient_of(rank, iteration);
      }
      EXPECT_LE((x - expected / topology.workers()).abs().max().item<double>(), 1e-12) << level;
    });
  }
}

// The limit 0 makes regions average in every iteration: that is bulk synchronous training.
TEST(ExactInsideTest, WithoutDisagreementItIsBsp) {
  const Topology topology = testing::racks(2, 2, 4e6, 1e6, 2);
  std::vector<at::Tensor> ends(2);
  for (const bool exact : {false, true}) {
    run_ranks(8, [&](World& world) {
      SyncOptions options;
      if (exact) {
        options.disagreement = 0;
        options.exact_inside = exact_inside_from_name("host");
      } else {
        options.method = Method::kBspRing;
      }
      Student student(world, topology, options, false);
      for (int iteration = 0; iteration < 20; ++iteration) student.learn();
      if (world.rank() == 5) ends[exact ? 1 : 0] = student.values();
    });
  }
  EXPECT_LE((ends[0] - ends[1]).abs().max().item<double>(), 2e-5);
}

// Gradients of 1, 2, 3, 4 in the one rack, and of 5 to 8 in the other.
TEST(ExactInsideTest, ClippingSeesTheMeanGradientOfTheRegion) {
  run_ranks(8, [&](World& world) {
    at::Tensor x = at::zeros({4}).requires_grad_();
    const auto sync = make_synchronizer(world, {{{"x", x}}, {}, {}}, testing::racks(2, 4, 4e6, 1e6),
                                        {.exact_inside = exact_inside_from_name("rack")});
    sync->before_forward();
    x.mutable_grad() = at::full({4}, static_cast<float>(world.rank() + 1));
    sync->after_backward();
    EXPECT_DOUBLE_EQ(sync->clip_gradients(1), world.rank() < 4 ? 5 : 13);
    EXPECT_NEAR(x.grad()[0].item<double>(), 0.5, 1e-6);
    sync->after_step();
  });
}

// A run that goes on from a state ends with the same bits as one that was not interrupted.
TEST(ExactInsideTest, GoesOnFromItsState) {
  const Topology topology = testing::racks(2, 2, 4e6, 1e6, 2);
  const SyncOptions options{
      .disagreement = 0.4, .exact_inside = exact_inside_from_name("host"), .state = StateTreatment::kLocal};
  const auto gradient_of = [](int rank, std::int64_t iteration) {
    return at::sin(at::arange(37, at::kFloat) * 0.9 + rank * 1.7 + static_cast<double>(iteration) * 2.3);
  };
  run_ranks(8, [&](World& world) {
    const auto run = [&](at::Tensor& x, Synchronizer& sync, std::int64_t until) {
      const at::NoGradGuard no_grad;
      while (sync.iteration() < until) {
        const at::Tensor gradient = gradient_of(world.rank(), sync.iteration());
        sync.before_forward();
        x.mutable_grad() = gradient;
        sync.after_backward();
        x.add_(x.grad(), -0.1);
        sync.after_step();
      }
    };
    at::Tensor whole = at::zeros({37}).requires_grad_();
    run(whole, *make_synchronizer(world, {{{"x", whole}}, {}, {}}, topology, options), 23);
    at::Tensor first = at::zeros({37}).requires_grad_();
    SyncState state;
    {
      const auto sync = make_synchronizer(world, {{{"x", first}}, {}, {}}, topology, options);
      run(first, *sync, 10);
      state = sync->state();
    }
    at::Tensor second = at::zeros({37}).requires_grad_();
    const auto sync = make_synchronizer(world, {{{"x", second}}, {}, {}}, topology, options);
    {
      const at::NoGradGuard no_grad;
      second.copy_(first);
    }
    sync->load_state(state);
    run(second, *sync, 23);
    EXPECT_TRUE(at::equal(second, whole));
  });
}

TEST(ExactInsideTest, ASecondBackwardPassIsRefused) {
  run_ranks(2, [&](World& world) {
    at::Tensor x = at::ones({3}).requires_grad_();
    const Topology topology = testing::racks(1, 1, 4e6, 1e6, 2);
    const auto sync =
        make_synchronizer(world, {{{"x", x}}, {}, {}}, topology, {.exact_inside = exact_inside_from_name("host")});
    sync->before_forward();
    x.sum().backward();
    EXPECT_THAT(testing::message_of<Error>([&] { x.sum().backward(); }),
                HasSubstr("the gradient of 'x' has changed while it is averaged"));
  });
}

// Unless it was announced.
TEST(ExactInsideTest, GradientsOfSeveralPassesAreAveragedAfterTheLast) {
  run_ranks(2, [&](World& world) {
    at::Tensor x = at::ones({3}).requires_grad_();
    Replica replica{{{"x", x}}, {}, {}};
    replica.has_one_backward_pass = [] { return false; };
    const auto sync = make_synchronizer(world, replica, testing::racks(1, 1, 4e6, 1e6, 2),
                                        {.exact_inside = exact_inside_from_name("host")});
    sync->before_forward();
    for (int pass = 0; pass < 2; ++pass) (x.sum() * (world.rank() + 1)).backward();
    sync->after_backward();
    EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 3.0)));
    sync->after_step();
  });
}

}  // namespace
}  // namespace dssync
