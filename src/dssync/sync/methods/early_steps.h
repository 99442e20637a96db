// Steps of the optimizer while the backward pass still runs: of each bucket as soon as its gradients are there. Only
// where nobody needs all gradients before the step: the first iterations are watched for clipping, scaling and several
// backward passes. Owned by ds-sync, and called by its thread and by the hooks of autograd (gradient_buckets.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dssync/sync/gradient_buckets.h"
#include "dssync/sync/replica.h"

namespace dssync {

class EarlySteps {
 public:
  // Steps the parameters of a bucket (by number).
  using MakeStep = std::function<void(std::size_t bucket)>;

  // `replica` must outlive it.
  EarlySteps(const Replica& replica, const std::vector<Flat>& layout, const std::vector<Bucket>& buckets,
             MakeStep make_step);

  // An iteration begins. `is_allowed`: to step early in this one, if all workers have agreed to it.
  void begin(bool is_allowed);
  bool has_begun() const { return gradients_.is_armed(); }

  // The backward pass is over.
  void finish_backward();
  // Whether steps are made early in this iteration; after finish_backward(): all have been made.
  bool steps() const { return steps_; }
  // Parameters that have a gradient, by index; after finish_backward().
  const std::vector<bool>& has_gradient() const { return has_gradient_; }

  // The program needs all gradients before it steps. Throws Error where steps were made already.
  void need_gradients();

  // The program has done to the gradients all that it does before its step. Throws Error where it changed some whose
  // step was made already.
  void check_gradients();

  // The iteration is over. Returns true once: now workers have to agree.
  bool end();
  // In the last iterations nothing spoke against it.
  bool can_step() const { return clean_ >= kClean; }
  void set_agreed(bool is_agreed) { is_agreed_ = is_agreed; }

 private:
  // A gradient as it was when its bucket was complete.
  struct Seen {
    const void* tensor = nullptr;
    std::int64_t version = 0;
  };
  // Iterations before workers agree, and how many of them have to be clean: the first one of a program that does not
  // call before_forward() begins too late to be watched.
  static constexpr int kWatched = 3;
  static constexpr int kClean = 2;

  Seen look_at(std::size_t parameter) const;
  void on_complete(const Bucket& bucket);
  void on_late(std::size_t parameter);

  const Replica& replica_;
  const MakeStep make_step_;
  std::vector<Seen> seen_;          // by parameter
  std::vector<bool> has_gradient_;  // by parameter
  std::size_t next_ = 0;            // bucket
  bool is_agreed_ = false;
  bool steps_ = false;
  bool is_in_backward_ = false;
  bool is_checked_ = false;  // in this iteration
  bool is_clean_ = false;    // so far, this iteration
  int watched_ = 0;
  int clean_ = 0;              // of the watched ones, the last that were clean
  GradientBuckets gradients_;  // last: it calls this object
};

}  // namespace dssync
