#include "dssync/sync/methods/ds_sync.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/collective/program/plan_program.h"
#include "dssync/live/adaptation.h"
#include "dssync/planner/cost.h"
#include "dssync/sync/disagreement_meter.h"
#include "dssync/sync/methods/base_synchronizer.h"
#include "dssync/sync/take_over.h"

namespace dssync {
namespace {

Plan plan_for(const Topology& topology, double bytes, const SyncOptions& options, double limit) {
  Planner planner(topology, bytes, options.group_limit);
  return options.published ? planner.published() : planner.require(limit);
}

// Local SGD is the schedule in which nobody averages but in every period-th round, where all do.
Plan plan_of_local_sgd(const Group& everyone, const Topology& topology, double bytes, int period) {
  Plan plan;
  Round alone{"nobody", {}};
  for (const Rank rank : everyone) alone.groups.push_back({rank});
  plan.rounds.assign(static_cast<std::size_t>(period - 1), alone);
  plan.rounds.push_back({"all", {everyone}});
  plan.mixing = measure_mixing(plan.rounds, topology.workers());
  plan.cost = cost_of(plan.rounds, plan.shards, topology, bytes);
  return plan;
}

std::vector<std::string> lines_of(const Plan& plan) {
  std::vector<std::string> lines = {fmt::format("{} shards", plan.shards)};
  for (const Round& round : plan.rounds) lines.push_back(fmt::format("round {}", fmt::join(round.groups, " ")));
  return lines;
}

// Tensors that follow the schedule together: the parameters, or one kind of optimizer state.
struct AveragedSet {
  TensorSet* tensors = nullptr;
  std::unique_ptr<TakeOver> rule;
  int period = 1;                   // of ScheduleProgram::slices
  std::vector<FlatSlice> slices{};  // whose average was started last
};

constexpr const char* kMoves = "moves";  // of SyncState: what the estimate of the disagreement rests on

// Squares that PyTorch's optimizers keep, and take the root of.
bool is_never_negative(const std::string& state) {
  constexpr std::array kNames = {"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum", "exp_inf"};
  return std::find(kNames.begin(), kNames.end(), state) != kNames.end();
}

class DsSync final : public BaseSynchronizer {
 public:
  DsSync(World& world, const Replica& replica, const Topology& topology, const SyncOptions& options, Timeline* timeline)
      : BaseSynchronizer(world, replica, topology, timeline, options), options_(options) {
    if (options_.steer && !replica_.learning_rate) throw InputError("steer: the replica has no learning_rate");
    const Plan plan = decide();
    world_.agree("plan", lines_of(plan));
    follow(make_plan_program(world_, plan, topology_, model_bytes()));
    everyone();
    if (options_.adapt && world_.size() > 1) adaptation_.emplace(world_, topology_, adaptation_options(), program_);
    sets_.push_back(make_set(parameters_, 1, false));
  }

  void drop_average() override { is_dropped_ = in_flight_; }

  const Plan* plan() const override { return &program_->plan; }

  std::vector<PlanEvent> take_plan_events() override { return std::exchange(events_, {}); }

 protected:
  void on_before_forward() override {
    if (in_flight_) wait();  // a consolidation came in between, and its correction is no longer wanted
    if (adaptation_) follow_changes();
    if (!options_.overlap) return;
    gather();
    start_averages();
    in_flight_ = true;
    is_dropped_ = false;
  }

  void on_after_step() override {
    if (options_.overlap && !in_flight_) throw Error("after_step() without before_forward()");
    gather();
    const MoveSample sample(parameters_.flats());
    if (!options_.overlap) start_averages();
    wait();
    if (!is_dropped_) take_over();
    in_flight_ = false;
    update_metrics(sample);
  }

  void add_state(SyncState& state) const override {
    state.tensors.push_back({kMoves, at::tensor(meter_->moves(), at::kDouble)});
  }

  void take_state(const SyncState& state) override {
    for (const auto& [name, tensor] : state.tensors) {
      if (name != kMoves) continue;
      const at::Tensor moves = tensor.to(at::kCPU, at::kDouble).contiguous();
      meter_->set_moves({moves.data_ptr<double>(), moves.data_ptr<double>() + moves.numel()});
    }
  }

  void on_iteration_done(Seconds taken) override {
    IterationRecord record{.iteration = iteration(),
                           .uses = engine_.take_stage_uses(),
                           .compute_seconds = taken.count() - metrics_.sync_seconds,
                           .disagreement = metrics_.disagreement,
                           .parameter_norm = metrics_.parameter_norm};
    if (!adaptation_) return;
    if (replica_.learning_rate) record.learning_rate = replica_.learning_rate();
    adaptation_->add(std::move(record));
  }

 private:
  Plan decide() {
    if (options_.plan) return *options_.plan;
    if (options_.method == Method::kLocalSgd) {
      return plan_of_local_sgd(world_.everyone(), topology_, model_bytes(), options_.period);
    }
    const double limit = options_.steer ? Adaptation::first_limit(adaptation_options()) : options_.disagreement;
    return plan_for(topology_, model_bytes(), options_, limit);
  }

  AdaptationOptions adaptation_options() {
    return {.bytes = model_bytes(),
            .disagreement = options_.disagreement,
            .group_limit = options_.group_limit,
            .steer = options_.steer,
            .overlap = options_.overlap,
            .lasting = channels_of(*everyone()),
            .device = parameters_.flats().empty() ? at::Device(at::kCPU) : parameters_.flats().front().vector.device()};
  }

  void follow(std::shared_ptr<const PlanProgram> program) {
    program_ = std::move(program);
    // Overlapped averages miss the latest step.
    const double missed = options_.overlap ? 1 - 1 / static_cast<double>(world_.size()) : 0;
    meter_.emplace(program_->plan.rounds.size(), program_->plan.mixing.steady_disagreement + missed, world_.size());
  }

  void follow_changes() {
    std::optional<ProgramChange> change = adaptation_->change_at(iteration());
    if (!change) return;
    follow(std::move(change->program));
    record_change(change->why.explanation);
    events_.push_back({iteration(), std::move(change->why)});
  }

  AveragedSet make_set(TensorSet& tensors, int period, bool never_negative) const {
    return {&tensors,
            options_.overlap ? add_correction(tensors.flats(), never_negative) : replace_by_average(tensors.flats()),
            period};
  }

  // An optimizer makes the state of a parameter in the first step that has a gradient for it, which may be another step
  // on every worker. What all of them have is adopted; the rest is looked for again, ever less often.
  void adopt_optimizer_state() {
    if (options_.state_treatment() == StateTreatment::kLocal || !replica_.optimizer_state || iteration() < next_look_)
      return;
    next_look_ = iteration() + look_again_after_;
    look_again_after_ *= 2;
    std::vector<std::string> lines;
    std::map<std::string, std::pair<std::string, NamedTensor>> by_line;  // its kind, and the tensor
    for (const OptimizerState& state : replica_.optimizer_state()) {
      const std::vector<std::string> tensors = describe(state.tensors);
      for (std::size_t index = 0; index < tensors.size(); ++index) {
        lines.push_back(state.name + " of " + tensors[index]);
        by_line[lines.back()] = {state.name, state.tensors[index]};
      }
    }
    std::set<std::string> kinds;
    std::map<std::string, std::vector<NamedTensor>> fresh;  // by kind
    for (const std::string& line : world_.common("optimizer state", lines)) {
      const auto& [kind, tensor] = by_line.at(line);
      kinds.insert(kind);
      if (adopted_.insert(line).second) fresh[kind].push_back(tensor);
    }
    const bool is_complete = !kinds.empty() && adopted_.size() == kinds.size() * replica_.parameters.size();
    if (is_complete) next_look_ = std::numeric_limits<std::int64_t>::max();
    for (const auto& [kind, tensors] : fresh) {
      TensorSet& added = *optimizer_state_.emplace_back(std::make_unique<TensorSet>(tensors, replica_.storage));
      sets_.push_back(make_set(added, options_.state_parts(), is_never_negative(kind)));
    }
  }

  bool warming_up() const { return iteration() < options_.warmup_iterations; }

  std::vector<ScheduledSlice> slices_of(const at::Tensor& vector, int period) const {
    return program_->schedule.slices(vector.numel(), iteration(), period);
  }

  // The slices of one vector that one round averages.
  struct Job {
    std::vector<at::Tensor> slices;
    std::shared_ptr<const Chain> chain;
  };

  // It keeps the whole program alive.
  std::shared_ptr<const Chain> chain_of(std::size_t round) const { return {program_, &program_->chains[round]}; }

  std::vector<Job> jobs_of(const at::Tensor& vector, int period) {
    std::map<std::size_t, Job> by_round;
    for (const auto& [begin, end, round] : slices_of(vector, period)) {
      Job& job = by_round[round];
      job.slices.push_back(vector.narrow(0, begin, end - begin));
      job.chain = warming_up() ? everyone() : chain_of(round);
    }
    std::vector<Job> jobs;
    for (auto& [round, job] : by_round) jobs.push_back(std::move(job));
    return jobs;
  }

  // What takes longest comes first, so that it doesn't end last.
  void start(const std::vector<Flat>& flats, int period) {
    std::vector<Job> jobs;
    for (const Flat& flat : flats) {
      for (Job& job : jobs_of(flat.vector, period)) {
        if (!job.chain->empty()) jobs.push_back(std::move(job));
      }
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const Job& a, const Job& b) { return a.chain->urgency > b.chain->urgency; });
    for (const Job& job : jobs) engine_.average(job.slices, job.chain, iteration(), together());
  }

  // What an iteration keeps the network busy.
  Seconds together() {
    return warming_up() ? Seconds(model_bytes() * everyone()->seconds_per_byte)
                        : Seconds(program_->plan.cost.seconds_per_iteration - program_->plan.cost.latency_seconds);
  }

  // Values that are borrowed may have changed.
  void gather() {
    for (AveragedSet& set : sets_) set.tensors->gather();
  }

  // Of all tensors that follow the schedule.
  void start_averages() {
    adopt_optimizer_state();
    for (AveragedSet& set : sets_) {
      set.slices = slices_of(set);
      set.rule->prepare(set.slices);
      start(set.rule->averaged(), set.period);
    }
  }

  // Of all averages that were started.
  void take_over() {
    for (AveragedSet& set : sets_) {
      set.rule->apply(set.slices);
      set.tensors->scatter();
    }
  }

  std::vector<FlatSlice> slices_of(const AveragedSet& set) const {
    std::vector<FlatSlice> slices;
    const std::vector<Flat>& flats = set.tensors->flats();
    for (std::size_t flat = 0; flat < flats.size(); ++flat) {
      for (const auto& [begin, end, round] : slices_of(flats[flat].vector, set.period)) {
        slices.push_back({flat, begin, end});
      }
    }
    return slices;
  }

  void update_metrics(const MoveSample& sample) {
    const auto [move, norm] = sample.measure(parameters_.flats());
    metrics_.disagreement = warming_up() ? 0 : meter_->add(move);
    metrics_.parameter_norm = std::sqrt(norm);
  }

  const SyncOptions options_;
  std::shared_ptr<const PlanProgram> program_;  // what it follows now
  std::optional<DisagreementMeter> meter_;      // of this program
  std::vector<std::unique_ptr<TensorSet>> optimizer_state_;
  std::vector<AveragedSet> sets_;
  std::set<std::string> adopted_;  // optimizer state, as it is compared
  std::int64_t next_look_ = 0;     // for more of it, in this iteration
  std::int64_t look_again_after_ = 1;
  bool in_flight_ = false;
  bool is_dropped_ = false;  // what is in flight is of no use
  std::vector<PlanEvent> events_;
  std::optional<Adaptation> adaptation_;
};

}  // namespace

std::unique_ptr<Synchronizer> make_ds_sync(World& world, const Replica& replica, const Topology& topology,
                                           const SyncOptions& options, Timeline* timeline) {
  return std::make_unique<DsSync>(world, replica, topology, options, timeline);
}

}  // namespace dssync
