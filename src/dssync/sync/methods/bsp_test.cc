// Gradients of the exact methods, against sums in double precision, and their ways to arrive.
#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "dssync/comm/testing.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/testing.h"

namespace dssync {
namespace {

using testing::run_ranks;

struct BspSetting {
  Method method;
  std::int64_t bucket_bytes;
};

class BspTest : public ::testing::TestWithParam<BspSetting> {
 protected:
  SyncOptions options() const { return {.method = GetParam().method, .bucket_bytes = GetParam().bucket_bytes}; }
};

// Parameters of odd sizes and two types; the gradient of sum(c * x) is c.
std::vector<NamedTensor> make_parameters() {
  return {{"one", at::zeros({1}).requires_grad_()},
          {"prime", at::zeros({13, 7}).requires_grad_()},
          {"double", at::zeros({5}, at::kDouble).requires_grad_()},
          {"large", at::zeros({1009}).requires_grad_()}};
}

at::Tensor slope(int rank, std::size_t index, const at::Tensor& like) {
  return at::sin(at::arange(like.numel(), at::kDouble) * 0.7 + rank * 1.1 + static_cast<double>(index))
      .view(like.sizes());
}

void backward(const std::vector<NamedTensor>& parameters, int rank, const std::vector<std::size_t>& used) {
  at::Tensor loss = at::zeros({}, at::kDouble);
  for (const std::size_t index : used) {
    const at::Tensor& parameter = parameters[index].tensor;
    loss = loss + (parameter * slope(rank, index, parameter).to(parameter.scalar_type())).to(at::kDouble).sum();
  }
  loss.backward();
}

void expect_mean_gradients(const std::vector<NamedTensor>& parameters, int workers,
                           const std::vector<std::size_t>& used) {
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const at::Tensor& parameter = parameters[index].tensor;
    at::Tensor expected = at::zeros(parameter.sizes(), at::kDouble);
    if (std::find(used.begin(), used.end(), index) != used.end()) {
      for (int rank = 0; rank < workers; ++rank) expected += slope(rank, index, parameter);
    }
    expected /= workers;
    ASSERT_TRUE(parameter.grad().defined());
    EXPECT_LT((parameter.grad().to(at::kDouble) - expected).abs().max().item<double>(), 1e-6) << parameters[index].name;
  }
}

TEST_P(BspTest, GradientsAreTheMean) {
  const Topology topology = testing::racks(2, 3, 4, 1);
  run_ranks(6, [&](World& world) {
    const std::vector<NamedTensor> parameters = make_parameters();
    const auto sync = make_synchronizer(world, {parameters, {}, {}}, topology, options());
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (const NamedTensor& named : parameters) named.tensor.grad().zero_();
      sync->before_forward();
      backward(parameters, world.rank(), {0, 1, 2, 3});
      sync->after_backward();
      expect_mean_gradients(parameters, 6, {0, 1, 2, 3});
      sync->after_step();
      EXPECT_GT(sync->metrics().bytes_sent, 0);
    }
  });
}

TEST_P(BspTest, UnusedParametersAndDroppedGradientsDoNoHarm) {
  const Topology topology = testing::racks(2, 2, 4, 1);
  run_ranks(4, [&](World& world) {
    const std::vector<NamedTensor> parameters = make_parameters();
    const auto sync = make_synchronizer(world, {parameters, {}, {}}, topology, options());
    for (const std::vector<std::size_t>& used : {std::vector<std::size_t>{1, 3}, {0, 2}, {3}}) {
      for (NamedTensor named : parameters) named.tensor.mutable_grad() = at::Tensor();
      sync->before_forward();
      backward(parameters, world.rank(), used);
      sync->after_backward();
      expect_mean_gradients(parameters, 4, used);
      sync->after_step();
    }
  });
}

TEST_P(BspTest, GradientsOfSeveralBackwardPassesAddUp) {
  run_ranks(2, [&](World& world) {
    const std::vector<NamedTensor> parameters = make_parameters();
    const auto sync = make_synchronizer(world, {parameters, {}, {}}, testing::flat(2), options());
    backward(parameters, world.rank(), {0, 1, 2, 3});  // before before_forward(): stays local for now
    sync->before_forward();
    backward(parameters, world.rank(), {0, 1, 2, 3});
    sync->after_backward();
    for (const NamedTensor& named : parameters) named.tensor.grad().div_(2);
    expect_mean_gradients(parameters, 2, {0, 1, 2, 3});
  });
}

TEST_P(BspTest, TheModelOutlivesItsSynchronizer) {
  run_ranks(2, [&](World& world) {
    const std::vector<NamedTensor> parameters = make_parameters();
    make_synchronizer(world, {parameters, {}, {}}, testing::flat(2), options())->before_forward();
    backward(parameters, world.rank(), {0, 1, 2, 3});
    EXPECT_TRUE(at::allclose(parameters[3].tensor.grad(), slope(world.rank(), 3, parameters[3].tensor).to(at::kFloat)));
  });
}

TEST_P(BspTest, AveragesStartDuringTheBackwardPass) {
  Timeline timeline;
  run_ranks(2, [&](World& world) {
    const std::vector<NamedTensor> parameters = make_parameters();
    Timeline* const watched = world.rank() == 0 ? &timeline : nullptr;
    const auto sync = make_synchronizer(world, {parameters, {}, {}}, testing::flat(2), options(), watched);
    sync->before_forward();
    backward(parameters, world.rank(), {0, 1, 2, 3});
    const Clock::time_point end = Clock::now();
    sync->after_backward();
    if (world.rank() != 0) return;
    const std::vector<Span> spans = timeline.spans();
    EXPECT_TRUE(std::any_of(spans.begin(), spans.end(),
                            [end](const Span& span) { return span.kind == Span::Kind::kStage && span.start < end; }))
        << "of " << spans.size() << " spans";
  });
}

INSTANTIATE_TEST_SUITE_P(All, BspTest,
                         ::testing::Values(BspSetting{Method::kBspRing, 1 << 20}, BspSetting{Method::kBspRing, 100},
                                           BspSetting{Method::kBspHierarchical, 1 << 20},
                                           BspSetting{Method::kBspHierarchical, 100}, BspSetting{Method::kPs, 1 << 20},
                                           BspSetting{Method::kPs, 64}),
                         [](const auto& setting) {
                           std::string name =
                               name_of(setting.param.method) + std::to_string(setting.param.bucket_bytes);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace dssync
