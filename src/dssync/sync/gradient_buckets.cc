#include "dssync/sync/gradient_buckets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>

namespace dssync {

std::vector<Bucket> make_buckets(const std::vector<Flat>& parameters, std::int64_t bytes) {
  std::vector<Bucket> buckets;
  for (std::size_t flat = 0; flat < parameters.size(); ++flat) {
    const auto& [vector, parts] = parameters[flat];
    const auto limit = bytes / static_cast<std::int64_t>(vector.element_size());
    std::int64_t end = vector.numel();
    buckets.push_back({flat, end, end});
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (buckets.back().end - part->offset > limit && !buckets.back().parameters.empty()) {
        buckets.push_back({flat, end, end});
      }
      end = part->offset;
      buckets.back().begin = end;
      buckets.back().parameters.push_back(part->index);
    }
  }
  return buckets;
}

std::vector<Bucket> split(const std::vector<Flat>& parameters, std::size_t count) {
  double bytes = 0;
  for (const Flat& flat : parameters) bytes += static_cast<double>(flat.vector.nbytes());
  std::vector<Bucket> buckets;
  for (std::size_t flat = 0; flat < parameters.size(); ++flat) {
    const auto& [vector, parts] = parameters[flat];
    const double share = static_cast<double>(vector.nbytes()) / bytes * static_cast<double>(count);
    const double wanted = std::max(1.0, std::floor(share));
    const double size = static_cast<double>(std::max<std::int64_t>(1, vector.numel()));
    std::int64_t end = vector.numel();
    double current = -1;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      // A parameter goes where its middle is.
      const double middle = static_cast<double>(vector.numel()) - static_cast<double>(part->offset + end) / 2;
      const double number = std::floor(wanted * middle / size);
      if (number != current) buckets.push_back({flat, end, end});
      current = number;
      end = part->offset;
      buckets.back().begin = end;
      buckets.back().parameters.push_back(part->index);
    }
  }
  // Flat tensors of several types share the layers.
  std::stable_sort(buckets.begin(), buckets.end(), [](const Bucket& a, const Bucket& b) {
    return a.parameters.front() > b.parameters.front();
  });
  return buckets;
}

GradientBuckets::GradientBuckets(std::vector<NamedTensor> parameters, const std::vector<Flat>& layout,
                                 std::vector<Bucket> buckets, Place place, Listener listener)
    : parameters_(std::move(parameters)),
      buckets_(std::move(buckets)),
      listener_(std::move(listener)),
      bucket_of_(parameters_.size()),
      offset_of_(parameters_.size()),
      has_arrived_(parameters_.size()) {
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    for (const std::size_t parameter : buckets_[index].parameters) bucket_of_[parameter] = index;
  }
  for (const Flat& flat : layout) {
    for (const Flat::Part& part : flat.parts) offset_of_[part.index] = part.offset;
  }
  if (place == Place::kFlat) gradients_ = flat_like(layout);
  const at::NoGradGuard no_grad;
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    collect(parameter);
    watch(parameter);
  }
}

GradientBuckets::~GradientBuckets() { *self_ = nullptr; }

void GradientBuckets::arm() {
  missing_.clear();
  for (const Bucket& bucket : buckets_) missing_.push_back(bucket.parameters.size());
  std::fill(has_arrived_.begin(), has_arrived_.end(), false);
  next_ = 0;
  is_armed_ = true;
}

void GradientBuckets::finish() {
  for (std::size_t parameter = 0; parameter < has_arrived_.size(); ++parameter) {
    if (!has_arrived_[parameter]) arrive(parameter);
  }
  is_armed_ = false;
}

void GradientBuckets::watch(std::size_t parameter) {
  auto accumulator = torch::autograd::impl::grad_accumulator(parameters_[parameter].tensor);
  if (!accumulator) return;
  using Variables = torch::autograd::variable_list;
  accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [self = self_, parameter](const Variables& outputs, const Variables&) {
        if (*self != nullptr && (*self)->is_armed_) (*self)->arrive(parameter);
        return outputs;
      }));
  accumulators_.push_back(std::move(accumulator));
}

void GradientBuckets::arrive(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  if (has_arrived_[parameter]) {
    if (listener_.on_late) listener_.on_late(parameter);
    return;
  }
  collect(parameter);
  has_arrived_[parameter] = true;
  --missing_[bucket_of_[parameter]];
  while (next_ < buckets_.size() && missing_[next_] == 0) listener_.on_complete(buckets_[next_++]);
}

// Makes the gradient a view into the flat one, whatever put it elsewhere (an optimizer that drops it, say).
void GradientBuckets::collect(std::size_t parameter) {
  if (gradients_.empty()) return;
  at::Tensor tensor = parameters_[parameter].tensor;
  at::Tensor view = view_in_flat(parameter);
  const at::Tensor gradient = tensor.grad();
  if (gradient.defined() && gradient.data_ptr() == view.data_ptr()) return;
  if (gradient.defined()) {
    view.copy_(gradient);
  } else {
    view.zero_();
  }
  tensor.mutable_grad() = view;
}

// Shares the memory of the flat gradient, but is no view to autograd: optimizers detach gradients in place.
at::Tensor GradientBuckets::view_in_flat(std::size_t parameter) const {
  const Flat& flat = gradients_[buckets_[bucket_of_[parameter]].flat];
  const at::Tensor view = view_of(flat, offset_of_[parameter], parameters_[parameter].tensor);
  return at::empty({0}, flat.vector.options())
      .set_(flat.vector.storage(), view.storage_offset(), view.sizes(), view.strides());
}

}  // namespace dssync
