#include "dssync/sync/gradient_averages.h"

#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

double bytes_of(const std::vector<Flat>& flats) {
  double bytes = 0;
  for (const Flat& flat : flats) bytes += static_cast<double>(flat.vector.nbytes());
  return bytes;
}

std::vector<at::Tensor> zeros_for(const std::vector<Flat>& layout, const Chain& chain) {
  std::vector<at::Tensor> result;
  for (const Flat& flat : layout) {
    const bool is_encoded = chain.has_codecs && flat.vector.scalar_type() == at::kFloat;
    result.push_back(is_encoded ? at::zeros_like(flat.vector) : at::Tensor());
  }
  return result;
}

std::string name_of_lost(std::size_t flat) { return fmt::format("lost of gradients {}", flat); }

[[noreturn]] void refuse_late_gradient(const std::string& name) {
  throw Error(fmt::format(
      "the gradient of '{}' has changed while it is averaged: expected one backward pass for each step", name));
}

}  // namespace

GradientAverages::GradientAverages(const std::vector<NamedTensor>& parameters, const std::vector<Flat>& layout,
                                   std::int64_t bucket_bytes, std::shared_ptr<const Chain> chain, Engine& engine)
    : chain_(std::move(chain)),
      engine_(engine),
      together_(bytes_of(layout) * chain_->seconds_per_byte),
      lost_(zeros_for(layout, *chain_)),
      buckets_(parameters, layout, make_buckets(layout, bucket_bytes), GradientBuckets::Place::kFlat,
               {[this](const Bucket& bucket) { start(bucket); },
                [parameters](std::size_t index) { refuse_late_gradient(parameters[index].name); }}) {}

void GradientAverages::begin(std::int64_t iteration) {
  iteration_ = iteration;
  started_.clear();
  buckets_.arm();
}

std::vector<AverageId> GradientAverages::finish() {
  buckets_.finish();
  return std::exchange(started_, {});
}

void GradientAverages::start(const Bucket& bucket) {
  const std::int64_t size = bucket.end - bucket.begin;
  const at::Tensor gradient = buckets_.gradients()[bucket.flat].vector.narrow(0, bucket.begin, size);
  Travel travel{.label = (bucket.flat << 48U) | static_cast<std::uint64_t>(bucket.begin)};
  if (lost_[bucket.flat].defined()) {
    travel.lost = lost_[bucket.flat].narrow(0, bucket.begin, size);
    // A gradient that was no number (a GradScaler tries until it is one) leaves nothing to bring in.
    gradient.add_(travel.lost.nan_to_num_(0, 0, 0));
    travel.lost.zero_();
  }
  started_.push_back(engine_.average(gradient, chain_, iteration_, together_, travel));
}

void GradientAverages::save(std::vector<NamedTensor>& tensors) const {
  for (std::size_t flat = 0; flat < lost_.size(); ++flat) {
    if (lost_[flat].defined()) tensors.push_back({name_of_lost(flat), lost_[flat].clone()});
  }
}

void GradientAverages::restore(const std::vector<NamedTensor>& tensors) {
  for (std::size_t flat = 0; flat < lost_.size(); ++flat) {
    for (const auto& [name, tensor] : tensors) {
      const bool fits = lost_[flat].defined() && name == name_of_lost(flat) && tensor.numel() == lost_[flat].numel();
      if (fits) lost_[flat].copy_(tensor.view({-1}));
    }
  }
}

}  // namespace dssync
