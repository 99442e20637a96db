// Watches the links while training runs and, where that pays, changes the plan on all workers at the same iteration.
// docs/adaptation.md explains how it judges, docs/runtime.md how workers agree.
//
// The training thread hands in what an iteration was like and asks at the start of each which program to follow. A
// thread of its own does the rest: it shares these figures with the same threads of all other workers, so that all come
// to the same decision, and connects new process groups. The training thread waits only where a change has been decided
// and the others' answers, which iteration they are at, take longer than kMargin iterations.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "dssync/collective/engine.h"
#include "dssync/collective/program/plan_program.h"
#include "dssync/collective/timeline.h"
#include "dssync/live/interface_counter.h"
#include "dssync/live/side_channel.h"
#include "dssync/monitor/disagreement_control.h"
#include "dssync/monitor/link_monitor.h"
#include "dssync/monitor/pacer.h"
#include "dssync/monitor/policy.h"

namespace dssync {

struct AdaptationOptions {
  double bytes = 0;           // of the model, with which groups are lowered
  double disagreement = 0.5;  // the largest S allowed
  int group_limit = 0;
  std::vector<Group> replicas{};   // of all plans, as Plan::replicas
  CodecChoice codecs{};            // that plans may have
  bool steer = false;              // the limit on S as well
  bool overlap = false;            // averages run beside computing
  double missed = 0;               // what all plans leave beside their S
  std::vector<Channel> lasting{};  // process groups that are needed whatever the plan
  at::Device device = at::kCPU;
};

// One iteration of this worker.
struct IterationRecord {
  std::int64_t iteration = 0;
  std::vector<StageUse> uses{};
  double compute_seconds = 0;
  double counted_seconds = 0;  // as WorkerSample; add() fills them in
  double counted_out = 0;
  double counted_in = 0;
  double disagreement = 0;  // as SyncMetrics
  double parameter_norm = 0;
  double learning_rate = 0;
};

// What the training thread is to follow, and why.
struct ProgramChange {
  PlanChange why;
  std::shared_ptr<const PlanProgram> program;
};

class Adaptation {
 public:
  // Collective. `world` must outlive it, `nominal` is the network as the user describes it.
  Adaptation(World& world, const Topology& nominal, const AdaptationOptions& options,
             std::shared_ptr<const PlanProgram> first);

  // Returns when all that was handed in has been worked off, which every worker has handed in as well. At once where an
  // iteration was begun and not handed in, a probe waits for an iteration that does not come, or something failed; the
  // other workers' next call of change_at then throws. So after the last iteration consolidate first.
  ~Adaptation();
  Adaptation(const Adaptation&) = delete;
  Adaptation& operator=(const Adaptation&) = delete;

  // On S, for the plan to start with: the tightest where it is steered, otherwise the user's.
  static double first_limit(const AdaptationOptions& options);

  // The training thread, at the end of an iteration. Iterations follow each other without gaps.
  void add(IterationRecord record);

  // The training thread, before an iteration: the change that takes effect with it, if there is one. Throws PeerError
  // where the exchange with the other workers has failed.
  std::optional<ProgramChange> change_at(std::int64_t iteration);

 private:
  // What this host's interface has carried at some time, and what of that were probes.
  struct Reading {
    Clock::time_point time;
    InterfaceBytes interface;
    InterfaceBytes probes;
  };

  template <typename Action>
  void explained(Action action);
  bool counts_one_host_each();
  std::optional<Reading> read_interface() const;
  void count(IterationRecord& record) const;
  void expect_gradients(const Topology& nominal);
  void run();
  std::vector<IterationRecord> await_batch();
  void work_off(const std::vector<IterationRecord>& batch);
  void retire_past_plan(std::int64_t last_iteration);
  std::optional<PlanChange> decide();
  void prepare(PlanChange why);
  std::int64_t agree_on_iteration();
  enum class Message { kFigures, kPlan, kIteration };
  std::vector<std::vector<double>> exchange(Message message, std::vector<double> row);
  void probe(std::int64_t iteration);
  void await_begin_of(std::int64_t iteration);
  double iteration_seconds() const { return monitor_.iteration_seconds(options_.overlap); }
  std::optional<Plan> plan_for(const Topology& network) const;
  void retire_all_but(const PlanProgram& program);

  static constexpr std::int64_t kMargin = 2;  // iterations that training may go on while workers agree on a change
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  World& world_;
  const AdaptationOptions options_;

  // Of the training thread.
  const InterfaceCounter interface_;
  bool counts_ = false;
  // Bytes that this host's interface carries of an iteration's averages inside exact regions.
  double gradients_out_ = 0;
  double gradients_in_ = 0;
  std::optional<Reading> at_begin_;  // of the iteration

  // Of the background thread.
  SideChannel side_;
  LinkMonitor monitor_;
  ReplanPolicy policy_;
  std::optional<DisagreementControl> control_;  // where it steers
  double planned_limit_;
  std::shared_ptr<const PlanProgram> program_;  // in force, or about to be
  std::optional<ProgramChange> pending_;        // agreed on; its first iteration is not known to be done by all
  std::vector<Channel> retired_;                // used only before that, and kept while it may be taken back
  double decision_ = 0;                         // fingerprint of the last one
  std::vector<ProbeSample> probed_;             // by this worker, since the last batch
  Pacer pacer_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<IterationRecord> records_;
  std::size_t batch_size_ = 1;         // iterations of the next batch
  std::int64_t begun_ = -1;            // iteration of the training thread
  std::int64_t handed_in_ = -1;        // the last one
  std::int64_t hold_at_ = kNever;      // it may not begin this one yet
  std::optional<ProgramChange> next_;  // for the training thread
  std::exception_ptr failure_;
  bool stopping_ = false;
  const int exceptions_ = std::uncaught_exceptions();

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace dssync
