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
  const at::Tensor& flat = buckets_.gradients()[bucket.flat].vector;
  started_.push_back(
      engine_.average(flat.narrow(0, bucket.begin, bucket.end - bucket.begin), chain_, iteration_, together_));
}

}  // namespace dssync
