// Gradients that a group of workers averages, in buckets, while the backward pass brings them. Owned by a method;
// called as GradientBuckets are.
//
// Where the chain has codecs, what encoding takes away from this worker's gradients is kept and added to the next ones
// (error feedback).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/collective/engine.h"
#include "dssync/collective/program/chain.h"
#include "dssync/sync/gradient_buckets.h"
#include "dssync/sync/replica.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

class GradientAverages {
 public:
  // Of the chain's group. `layout`: where the parameters are in their flat tensors. The engine must outlive it.
  GradientAverages(const std::vector<NamedTensor>& parameters, const std::vector<Flat>& layout,
                   std::int64_t bucket_bytes, std::shared_ptr<const Chain> chain, Engine& engine);

  // Gradients that arrive from now on are averaged. A second backward pass throws Error: it would change what is under
  // way.
  void begin(std::int64_t iteration);
  bool has_begun() const { return buckets_.is_armed(); }

  // The backward pass is over: starts what is left, zeros for parameters without a gradient. Returns the averages to
  // wait for; then gradients are the group's means. REQUIRES: has_begun().
  std::vector<AverageId> finish();

  // What encoding took away and was not brought in yet, for checkpoints; nothing without codecs.
  void save(std::vector<NamedTensor>& tensors) const;
  // What is not there, or of another size, is left out.
  void restore(const std::vector<NamedTensor>& tensors);

 private:
  void start(const Bucket& bucket);

  const std::shared_ptr<const Chain> chain_;
  Engine& engine_;
  Seconds together_;  // of all gradients
  std::int64_t iteration_ = 0;
  std::vector<AverageId> started_;
  std::vector<at::Tensor> lost_;  // by flat tensor; undefined without codecs
  GradientBuckets buckets_;       // last: it uses all of the above
};

}  // namespace dssync
