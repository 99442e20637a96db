// Gradients as a backward pass brings them, in buckets: neighbouring parameters of one flat tensor, from the last to
// the first. Tells of a bucket once all its gradients are there, in an order that is the same on all workers, whatever
// the order of arrival.
//
// Owned by a method, and called by the method's thread. Gradients arrive in the threads of autograd, while the method's
// thread is in backward().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include "dssync/sync/replica.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

// The elements [begin, end) of a flat tensor, and the parameters that they are.
struct Bucket {
  std::size_t flat = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<std::size_t> parameters{};  // descending
};

// From the last parameter to the first. A bucket has `bytes` at most, unless one parameter alone has more.
std::vector<Bucket> make_buckets(const std::vector<Flat>& parameters, std::int64_t bytes);

// The same, in `count` buckets at most, as equal as whole parameters allow; at least one for each flat tensor.
std::vector<Bucket> split(const std::vector<Flat>& parameters, std::size_t count);

class GradientBuckets {
 public:
  enum class Place {
    kFlat,  // gradients become views into flat tensors; a parameter without one gets zeros
    kWhereTheyAre,
  };
  struct Listener {
    // All gradients are there, of the buckets before this one as well. Gradient mode is off.
    std::function<void(const Bucket&)> on_complete;
    // The gradient of this parameter has changed again after it had arrived. May be empty.
    std::function<void(std::size_t parameter)> on_late{};
  };

  // `layout`: where the parameters are in their flat tensors. All but the listener are copied; gradients that are there
  // already are kept.
  GradientBuckets(std::vector<NamedTensor> parameters, const std::vector<Flat>& layout, std::vector<Bucket> buckets,
                  Place place, Listener listener);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // The flat gradients, laid out as the parameters are; none with kWhereTheyAre.
  const std::vector<Flat>& gradients() const { return gradients_; }

  // Gradients that arrive from now on count.
  void arm();
  bool is_armed() const { return is_armed_; }

  // The backward pass is over: what has not arrived has no gradient. Tells of all buckets that are left. Gradients do
  // not count any more. REQUIRES: is_armed().
  void finish();

 private:
  using Accumulator = decltype(torch::autograd::impl::grad_accumulator(at::Tensor()));  // a pointer, of two kinds

  void watch(std::size_t parameter);
  void arrive(std::size_t parameter);
  void collect(std::size_t parameter);
  at::Tensor view_in_flat(std::size_t parameter) const;

  const std::vector<NamedTensor> parameters_;
  const std::vector<Bucket> buckets_;
  const Listener listener_;
  std::vector<Flat> gradients_;
  std::vector<std::size_t> bucket_of_;   // by parameter
  std::vector<std::int64_t> offset_of_;  // by parameter
  std::vector<bool> has_arrived_;        // by parameter
  std::vector<std::size_t> missing_;     // by bucket: gradients that are not there yet
  std::size_t next_ = 0;                 // bucket to tell of
  bool is_armed_ = false;
  std::vector<Accumulator> accumulators_;
  // A hook lives as long as its parameter, which may be longer than this object.
  std::shared_ptr<GradientBuckets*> self_ = std::make_shared<GradientBuckets*>(this);
};

}  // namespace dssync
