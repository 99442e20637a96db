#include "dssync/sync/methods/bsp.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "dssync/planner/stages.h"
#include "dssync/sync/methods/base_synchronizer.h"

namespace dssync {
namespace {

using Accumulator = decltype(torch::autograd::impl::grad_accumulator(at::Tensor()));  // a pointer, of different kinds

// Neighbouring gradients that travel together.
struct Bucket {
  std::size_t flat = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t parts = 0;
  std::size_t missing = 0;  // gradients that are not there yet
};

class Bsp final : public BaseSynchronizer {
 public:
  Bsp(World& world, const Replica& replica, const Topology& topology, const SyncOptions& options, Timeline* timeline)
      : BaseSynchronizer(world, replica, topology, timeline, options),
        bucket_bytes_(options.bucket_bytes),
        gradients_(flat_like(parameters_.flats())) {
    ChainBuilder builder(world, topology_);
    builder.add(info_of(options.method).lowering(world.everyone(), topology_), world.size());
    chain_ = std::make_shared<const Chain>(builder.build().front());
    make_buckets();
    adopt_gradients();
    watch_gradients();
  }

  ~Bsp() override { *self_ = nullptr; }

 protected:
  void on_before_forward() override {
    for (Bucket& bucket : buckets_) bucket.missing = bucket.parts;
    std::fill(arrived_.begin(), arrived_.end(), false);
    next_bucket_ = 0;
    armed_ = true;
  }

  void on_after_backward() override {
    if (!armed_) throw Error("after_backward() without before_forward()");
    for (std::size_t index = 0; index < arrived_.size(); ++index) {
      if (!arrived_[index]) gradient_arrived(index);
    }
    armed_ = false;
    wait();
  }

  double consolidate_parameters() override { return 0; }  // replicas are equal at all times

 private:
  // From the last parameter to the first, as the backward pass brings their gradients.
  void make_buckets() {
    bucket_of_.resize(replica_.parameters.size());
    offset_of_.resize(replica_.parameters.size());
    arrived_.resize(replica_.parameters.size());
    for (std::size_t flat = 0; flat < gradients_.size(); ++flat) {
      std::int64_t end = gradients_[flat].vector.numel();
      const auto& parts = gradients_[flat].parts;
      const auto limit = bucket_bytes_ / static_cast<std::int64_t>(gradients_[flat].vector.element_size());
      buckets_.push_back({flat, end, end, 0, 0});
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (buckets_.back().end - part->offset > limit && buckets_.back().parts > 0) {
          buckets_.push_back({flat, end, end, 0, 0});
        }
        end = part->offset;
        buckets_.back().begin = end;
        ++buckets_.back().parts;
        bucket_of_[part->index] = buckets_.size() - 1;
        offset_of_[part->index] = part->offset;
      }
    }
  }

  // Shares the memory of the flat gradient, but is no view to autograd: optimizers detach gradients in place.
  at::Tensor gradient_view(std::size_t index) {
    const Bucket& bucket = buckets_[bucket_of_[index]];
    const at::Tensor& flat = gradients_[bucket.flat].vector;
    const at::Tensor view = view_of(gradients_[bucket.flat], offset_of_[index], replica_.parameters[index].tensor);
    return at::empty({0}, flat.options()).set_(flat.storage(), view.storage_offset(), view.sizes(), view.strides());
  }

  void adopt_gradients() {
    const at::NoGradGuard no_grad;
    for (std::size_t index = 0; index < replica_.parameters.size(); ++index) collect(index);
  }

  // Makes the gradient a view into the flat one, whatever put it elsewhere (an optimizer that drops it, say).
  void collect(std::size_t index) {
    at::Tensor parameter = replica_.parameters[index].tensor;
    at::Tensor view = gradient_view(index);
    const at::Tensor gradient = parameter.grad();
    if (gradient.defined() && gradient.data_ptr() == view.data_ptr()) return;
    if (gradient.defined()) {
      view.copy_(gradient);
    } else {
      view.zero_();
    }
    parameter.mutable_grad() = view;
  }

  // A hook lives as long as its parameter, which may be longer than this object.
  void watch_gradients() {
    for (std::size_t index = 0; index < replica_.parameters.size(); ++index) {
      auto accumulator = torch::autograd::impl::grad_accumulator(replica_.parameters[index].tensor);
      if (!accumulator) continue;
      using Variables = torch::autograd::variable_list;
      accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [self = self_, index](const Variables& outputs, const Variables&) {
            if (*self != nullptr && (*self)->armed_) (*self)->gradient_arrived(index);
            return outputs;
          }));
      accumulators_.push_back(std::move(accumulator));
    }
  }

  // All workers start their buckets in the same order, whatever the order in which their gradients arrive.
  void gradient_arrived(std::size_t index) {
    if (arrived_[index]) return;
    const at::NoGradGuard no_grad;
    collect(index);
    arrived_[index] = true;
    --buckets_[bucket_of_[index]].missing;
    while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].missing == 0) {
      const Bucket& bucket = buckets_[next_bucket_++];
      engine_.average(gradients_[bucket.flat].vector.narrow(0, bucket.begin, bucket.end - bucket.begin), chain_,
                      iteration(), Seconds(model_bytes() * chain_->seconds_per_byte));
    }
  }

  const std::int64_t bucket_bytes_;
  std::vector<Flat> gradients_;
  std::shared_ptr<const Chain> chain_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;   // by parameter
  std::vector<std::int64_t> offset_of_;  // by parameter
  std::vector<bool> arrived_;            // by parameter, in this iteration
  std::size_t next_bucket_ = 0;
  bool armed_ = false;  // between before_forward and after_backward
  std::shared_ptr<Bsp*> self_ = std::make_shared<Bsp*>(this);
  std::vector<Accumulator> accumulators_;
};

}  // namespace

std::unique_ptr<Synchronizer> make_bsp(World& world, const Replica& replica, const Topology& topology,
                                       const SyncOptions& options, Timeline* timeline) {
  return std::make_unique<Bsp>(world, replica, topology, options, timeline);
}

}  // namespace dssync
