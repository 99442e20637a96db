// The tensors that follow the schedule together: the parameters, and the optimizer's state as far as all workers have
// it. They are averaged a bucket of parameters at a time, each with its part of every slice that is due. Owned by
// ds-sync; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dssync/codec/codec.h"
#include "dssync/collective/program/schedule_program.h"
#include "dssync/comm/world.h"
#include "dssync/sync/gradient_buckets.h"
#include "dssync/sync/reference.h"
#include "dssync/sync/replica.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/sync/take_over.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

// Slices of one dtype that one round averages together.
struct AveragingJob {
  std::size_t round = 0;
  bool is_state = false;  // of the optimizer, where that travels apart from the parameters
  std::vector<at::Tensor> slices{};
};

class AveragedSets {
 public:
  // How a result becomes part of the tensors of one kind (take_over.h); squares are never negative.
  using MakeRule = std::function<std::unique_ptr<TakeOver>(const std::vector<Flat>& live, bool never_negative)>;

  // All but `buckets` must outlive it.
  AveragedSets(World& world, const Replica& replica, TensorSet& parameters, std::vector<Bucket> buckets,
               const SyncOptions& options, MakeRule make_rule);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  std::size_t bucket_of(std::size_t parameter) const { return bucket_of_[parameter]; }

  // An optimizer makes the state of a parameter in the first step that has a gradient for it, which may be another step
  // on every worker. What all of them have is adopted; the rest is looked for again, ever less often. Collective in
  // iterations in which it looks, which are the same on all workers.
  bool looks_for_state(std::int64_t iteration) const;
  void adopt_state(std::int64_t iteration);

  // From now on parameters travel as differences to this; it moves with averages of everyone. The optimizer's state
  // travels apart from them: it changes from one iteration to the next as much as it differs between workers, so that
  // it has no use for a reference.
  void refer_to(Reference& reference) { reference_ = &reference; }

  // Live values that are borrowed may have changed; of this bucket.
  void gather(std::size_t bucket);

  enum class Turnout {
    kNobody,  // averages, and slices stay as they are
    kSome,
    kEveryone,
  };

  // The averages of this bucket start from the live values, which were gathered. Returns them, ordered by their rounds.
  std::vector<AveragingJob> prepare(std::size_t bucket, const ScheduleProgram& schedule, std::int64_t iteration,
                                    const std::function<Turnout(std::size_t round)>& turnout);

  // The averages of this bucket are done on all members, whatever this one does with their results.
  void complete(std::size_t bucket);

  // Their results become part of the live values. `on_move`, which may be empty, is told before how each slice of the
  // parameters moves, where the rule knows. REQUIRES: completed.
  using OnMove = std::function<void(const FlatSlice& slice, const TakeOver::Move& move)>;
  void take_over(std::size_t bucket, const OnMove& on_move);

  // Values that are borrowed may have changed since prepare().
  void gather();

 private:
  struct Set {
    TensorSet* tensors = nullptr;
    std::unique_ptr<TakeOver> rule;
    int period = 1;                                   // of ScheduleProgram::slices
    std::vector<std::vector<FlatSlice>> stretches{};  // by bucket: where its tensors are
    std::vector<std::vector<FlatSlice>> prepared{};   // by bucket: whose averages were started last
    std::vector<std::vector<FlatSlice>> common{};     // those of them that are everyone's
  };

  void add_set(TensorSet& tensors, const std::vector<std::size_t>& parameters, int period, bool never_negative);
  void add_state(const std::string& kind, std::vector<std::pair<std::size_t, NamedTensor>> tensors);

  World& world_;
  const Replica& replica_;
  const std::vector<Bucket> buckets_;
  const SyncOptions& options_;
  const MakeRule make_rule_;
  Reference* reference_ = nullptr;      // null: values travel themselves
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<Set> sets_;               // the parameters first
  std::vector<std::unique_ptr<TensorSet>> state_;
  std::set<std::string> adopted_;  // state, as it is compared
  std::int64_t next_look_ = 0;     // for more of it, in this iteration
  std::int64_t look_again_after_ = 1;
};

}  // namespace dssync
