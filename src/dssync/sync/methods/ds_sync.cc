#include "dssync/sync/methods/ds_sync.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/collective/program/plan_program.h"
#include "dssync/live/adaptation.h"
#include "dssync/method/choose_plan.h"
#include "dssync/method/overlap.h"
#include "dssync/planner/codec_error.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/exact_inside.h"
#include "dssync/sync/disagreement_meter.h"
#include "dssync/sync/gradient_averages.h"
#include "dssync/sync/methods/averaged_sets.h"
#include "dssync/sync/methods/base_synchronizer.h"
#include "dssync/sync/methods/early_steps.h"
#include "dssync/sync/optimizers/gradient_noise.h"
#include "dssync/sync/optimizers/inferred_momentum.h"
#include "dssync/sync/optimizers/noise_correction.h"
#include "dssync/sync/reference.h"
#include "dssync/sync/take_over.h"

namespace dssync {
namespace {

// Local SGD is the schedule in which nobody averages but in every period-th round, where all do.
Plan plan_of_local_sgd(const Group& everyone, const Topology& topology, double bytes, const SyncOptions& options) {
  Round alone{"nobody", {}};
  for (const Rank rank : everyone) alone.groups.push_back({rank});
  Schedule rounds(static_cast<std::size_t>(options.period - 1), alone);
  rounds.push_back({"all", {everyone}});
  return Planner(topology, bytes, 0, {}, options.codec_choice()).follow(rounds, 1);
}

std::vector<std::string> lines_of(const Plan& plan) {
  std::vector<std::string> lines = {fmt::format("{} shards", plan.shards)};
  if (!plan.replicas.empty()) lines.push_back(fmt::format("replicas {}", fmt::join(plan.replicas, " ")));
  lines.push_back(fmt::format("codecs {}", name_of(plan.codecs)));
  for (const Round& round : plan.rounds) lines.push_back(fmt::format("round {}", fmt::join(round.groups, " ")));
  return lines;
}

// Tensors of SyncState.
constexpr const char* kMoves = "moves";  // what the estimate of the disagreement rests on
constexpr const char* kNoise = "noise";  // of gradients
constexpr const char* kNoiseCounts = "noise_counts";

// To infer momentum, the values before an average are needed beside its result.
AveragedSets::MakeRule rule_of(Overlap overlap, bool infers) {
  return [overlap, infers](const std::vector<Flat>& live, bool never_negative) {
    if (overlap == Overlap::kCombine) return add_correction(live, never_negative);
    return overlap == Overlap::kLayered || infers ? replace_when_done(live) : replace_by_average(live);
  };
}

// Gradients of exact regions are averaged before anyone steps.
bool can_step_early(const SyncOptions& options, const Replica& replica) {
  const bool has_regions = options.plan ? !options.plan->replicas.empty() : options.exact_inside != ExactInside();
  return replica.step && !has_regions;
}

SyncOptions resolved(SyncOptions options, const Replica& replica) {
  if (options.method == Method::kDsSync) {
    options.state = resolve(options.state, replica.normalizing == Normalizing::kAdam);
  }
  return options;
}

class DsSync final : public BaseSynchronizer {
 public:
  DsSync(World& world, const Replica& replica, const Topology& topology, const SyncOptions& options, Timeline* timeline)
      : BaseSynchronizer(world, replica, topology, timeline, options),
        options_(resolved(options, replica)),
        moves_(parameters_.flats()) {
    if (options_.steer && !replica_.learning_rate) throw InputError("steer: the replica has no learning_rate");
    auto [mode, plan] = decide();
    options_.overlap = mode;
    std::vector<std::string> lines = lines_of(plan);
    lines.push_back("overlap " + name_of(overlap()));
    world_.agree("plan", lines);
    sets_.emplace(world_, replica_, parameters_, buckets_for(plan), options_, rule_of(overlap(), infers_momentum()));
    under_way_.resize(sets_->buckets().size());
    is_stepped_.resize(sets_->buckets().size());
    follow(make_plan_program(world_, plan, topology_, model_bytes()));
    if (!program_->plan.codecs.is_float32()) refer_to_live_values();
    everyone();
    average_gradients_inside();
    correction_.emplace(independent_gradients());
    noise_.emplace(replica_.parameters, independent_gradients());
    momentum_.emplace(parameters_.flats(), replica_.parameters.size(),
                      options_.noise_correction ? independent_gradients() : 1);
    if (options_.adapt && world_.size() > 1) adaptation_.emplace(world_, topology_, adaptation_options(), program_);
    for (std::size_t index = 0; index < replica_.parameters.size(); ++index) {
      every_parameter_.push_back(index);
      index_of_[replica_.parameters[index].tensor.unsafeGetTensorImpl()] = index;
    }
    if (overlap() != Overlap::kLayered) return;
    awaited_.resize(replica_.parameters.size());
    steps_.emplace(replica_, parameters_.flats(), sets_->buckets(), [this](std::size_t bucket) { step_early(bucket); });
  }

  void await(at::TensorList parameters) override {
    if (overlap() != Overlap::kLayered) return;
    for (const at::Tensor& parameter : parameters) {
      const auto found = index_of_.find(parameter.unsafeGetTensorImpl());
      if (found == index_of_.end()) continue;
      awaited_[found->second] = true;
      const std::size_t bucket = sets_->bucket_of(found->second);
      if (under_way_[bucket]) timed([this, bucket] { finish(bucket); });
    }
  }

  void settle() override {
    if (overlap() == Overlap::kCombine) return;  // there it is between two iterations that averages run
    for (const std::size_t bucket : order_) {
      if (under_way_[bucket]) finish(bucket);
    }
    if (done_) finish_iteration();
  }

  bool before_step() override {
    if (!steps_) return true;
    steps_->check_gradients();
    return !steps_->steps();
  }

  void drop_average() override { is_dropped_ = is_under_way(); }

  int replicas() const override { return program_->table->replicas().count(); }

  const Plan* plan() const override { return &program_->plan; }

  Overlap overlap() const override { return options_.overlap; }

  double planned_disagreement() const override { return total_disagreement(overlap(), program_->plan, world_.size()); }

  NoiseTreatment noise_treatment() const override {
    if (replicas() == 1 || replica_.normalizing == Normalizing::kNo) return NoiseTreatment::kNotNeeded;
    if (replica_.normalizing == Normalizing::kUnknown) return NoiseTreatment::kUnknown;
    return options_.noise_correction ? NoiseTreatment::kCorrected : NoiseTreatment::kOff;
  }

  std::vector<PlanChange> take_plan_changes() override { return std::exchange(changes_, {}); }

 protected:
  void on_before_forward() override {
    if (overlap() == Overlap::kCombine && is_under_way()) give_up();
    if (overlap() == Overlap::kLayered && !is_awaited_) settle();
    if (adaptation_) follow_changes();
    if (shares_reference_) share_reference();
    if (inside_ && replica_.has_one_backward_pass) inside_->begin(iteration());
    if (overlap() == Overlap::kCombine) {
      sets_->adopt_state(iteration());
      for (std::size_t bucket = 0; bucket < under_way_.size(); ++bucket) start(bucket);
    }
    if (steps_) steps_->begin(!sets_->looks_for_state(iteration()));
    std::fill(awaited_.begin(), awaited_.end(), false);
    std::fill(is_stepped_.begin(), is_stepped_.end(), false);
    next_to_start_ = 0;
  }

  void on_after_backward() override {
    if (inside_) finish_gradients();
    if (steps_) finish_backward();
    noise_->add();
    metrics_.noise_ratio = noise_->ratio();
    if (steps_ && steps_->steps() && !replica_.asks_before_step) drop_gradients();
  }

  void on_gradients_needed() override {
    if (steps_) steps_->need_gradients();
  }

  double squared_norm_of_mean(double own) override { return own / noise_->ratio(); }

  void on_after_step() override {
    if (overlap() == Overlap::kCombine) return combine();
    const bool is_stepped = steps_ && steps_->steps();
    if (!is_stepped) {
      after_step_of(every_parameter_);
      sets_->adopt_state(iteration());
      // What the next forward pass needs first goes first.
      for (std::size_t bucket = under_way_.size(); bucket-- > 0;) start(bucket);
    }
    if (overlap() == Overlap::kInLine) settle();
    if (steps_ && steps_->end()) agree_on_steps();
  }

  void add_state(SyncState& state) const override {
    state.tensors.push_back({kMoves, at::tensor(meter_->moves(), at::kDouble)});
    const GradientNoise::Memory noise = noise_->memory();
    state.tensors.push_back({kNoise, noise.values});
    state.tensors.push_back({kNoiseCounts, noise.counts});
    if (reference_) reference_->save(state.tensors);
    if (inside_) inside_->save(state.tensors);
  }

  void take_state(const SyncState& state) override {
    GradientNoise::Memory noise;
    for (const auto& [name, tensor] : state.tensors) {
      if (name == kNoise) noise.values = tensor;
      if (name == kNoiseCounts) noise.counts = tensor;
      if (name != kMoves) continue;
      const at::Tensor moves = tensor.to(at::kCPU, at::kDouble).contiguous();
      meter_->set_moves({moves.data_ptr<double>(), moves.data_ptr<double>() + moves.numel()});
    }
    if (noise.values.defined() && noise.counts.defined()) noise_->restore(noise);
    if (reference_ && !reference_->restore(state.tensors)) reference_->move_to(parameters_.flats());
    shares_reference_ = reference_.has_value();
    if (inside_) inside_->restore(state.tensors);
  }

  double consolidate_parameters() override {
    const double distance = BaseSynchronizer::consolidate_parameters();
    if (reference_) reference_->move_to(parameters_.flats());
    return distance;
  }

  void on_iteration_done(Seconds taken) override {
    done_ = IterationRecord{.iteration = iteration(),
                            .compute_seconds = taken.count() - metrics_.sync_seconds + gradient_seconds_};
    if (replica_.learning_rate) done_->learning_rate = replica_.learning_rate();
    compute_seconds_ = done_->compute_seconds;
    if (!is_under_way()) finish_iteration();
  }

 private:
  PlanChoice decide() {
    const bool early = can_step_early(options_, replica_);
    if (options_.plan) return {resolve(options_.overlap, early), *options_.plan};
    if (options_.method == Method::kLocalSgd) {
      return {resolve(options_.overlap, early),
              plan_of_local_sgd(world_.everyone(), topology_, model_bytes(), options_)};
    }
    SyncOptions options = options_;
    if (options_.steer) options.disagreement = first_limit();
    return choose_plan(topology_, model_bytes(), options, early);
  }

  // Where S is steered, the limit is on what averages leave beside the step that they may miss.
  double first_limit() {
    const double missed = options_.overlap == Overlap::kCombine ? step_disagreement(world_.size(), world_.size()) : 0;
    return Adaptation::first_limit({.disagreement = options_.disagreement, .steer = true}) + missed;
  }

  // The same in line and layered: sums of three and more depend on where they are cut.
  std::vector<Bucket> buckets_for(const Plan& plan) const {
    const Seconds communication(plan.cost.seconds_per_iteration);
    return split(parameters_.flats(), overlap() == Overlap::kCombine ? 1 : buckets_of(model_bytes(), communication));
  }

  AdaptationOptions adaptation_options() {
    return {.bytes = model_bytes(),
            .disagreement = options_.disagreement - (options_.steer ? 0 : missed()),
            .group_limit = options_.group_limit,
            .replicas = program_->plan.replicas,
            .codecs = options_.codec_choice(),
            .steer = options_.steer,
            .overlap = overlap() != Overlap::kInLine,
            .missed = missed(),
            .lasting = lasting_channels(),
            .device = parameters_.flats().empty() ? at::Device(at::kCPU) : parameters_.flats().front().vector.device()};
  }

  // What averages leave beside the plan's S.
  double missed() const { return missed_disagreement(overlap(), program_->plan, world_.size()); }

  // Whatever the plan.
  std::vector<Channel> lasting_channels() {
    std::vector<Channel> channels = channels_of(*everyone());
    if (inside_chain_) {
      for (const Channel& channel : channels_of(*inside_chain_)) channels.push_back(channel);
    }
    return channels;
  }

  // The workers of this worker's replica. All plans have the same.
  const Group& region() const {
    const Replicas& all = program_->table->replicas();
    return all.groups()[static_cast<std::size_t>(all.number_of(world_.rank()))];
  }

  void average_gradients_inside() {
    if (region().size() == 1) return;
    ChainBuilder builder(world_, topology_, "gradients, ");
    builder.add(lower(region(), topology_, model_bytes()), static_cast<int>(region().size()));
    inside_chain_ = std::make_shared<const Chain>(builder.build().front());
    inside_.emplace(replica_.parameters, parameters_.flats(), options_.bucket_bytes, inside_chain_, engine_);
  }

  // So many gradients with the noise of this worker's make up everyone's mean: where regions differ in size, about.
  int independent_gradients() const {
    return static_cast<int>(std::lround(static_cast<double>(world_.size()) / static_cast<double>(region().size())));
  }

  void finish_gradients() {
    const Clock::time_point start = Clock::now();
    if (!inside_->has_begun()) {
      if (replica_.has_one_backward_pass) throw Error("after_backward() without before_forward()");
      inside_->begin(iteration());
    }
    wait(inside_->finish());
    gradient_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }

  void follow(std::shared_ptr<const PlanProgram> program) {
    program_ = std::move(program);
    has_common_round_ = has_reference(program_->plan.rounds);
    meter_.emplace(program_->plan.rounds.size(), planned_disagreement(), step_disagreement(replicas(), world_.size()));
    arrange();
  }

  // In which order buckets are averaged; with the same figures on all workers.
  void arrange() {
    const bool is_known = agreed_compute_.count() > 0;
    const Seconds communication(is_known ? program_->plan.cost.seconds_per_iteration : 0);
    order_ = order_of_averages(under_way_.size(), agreed_compute_, communication);
  }

  void follow_changes() {
    std::optional<ProgramChange> change = adaptation_->change_at(iteration());
    if (!change) return;
    settle();
    follow(std::move(change->program));
    if (!reference_ && !program_->plan.codecs.is_float32()) {
      refer_to_live_values();
      shares_reference_ = true;
    }
    record_change(change->why.explanation);
    changes_.push_back(std::move(change->why));
  }

  // Which all workers have, or take over from rank 0 before they are used.
  void refer_to_live_values() {
    parameters_.gather();
    sets_->refer_to(reference_.emplace(parameters_.flats()));
  }

  void share_reference() {
    shares_reference_ = false;
    if (world_.size() > 1) take_over_from_rank_0(reference_->tensors());
  }

  AveragedSets::Turnout turnout_of(std::size_t round) {
    if (chain_of(round)->empty()) return AveragedSets::Turnout::kNobody;
    const bool is_common = warming_up() || program_->plan.rounds[round].groups.size() == 1;
    return is_common ? AveragedSets::Turnout::kEveryone : AveragedSets::Turnout::kSome;
  }

  // The first worker of this worker's group: groups round independently of each other.
  Rank first_of_group(std::size_t round) const {
    for (const Group& group : program_->plan.rounds[round].groups) {
      if (!warming_up() && std::find(group.begin(), group.end(), world_.rank()) != group.end()) return group.front();
    }
    return 0;
  }

  // Without rounds of everyone differences to the reference grow, and the optimizer's state has none: short codecs
  // would take too much from them.
  Travel travel_of(std::size_t bucket, const AveragingJob& job) const {
    const bool is_small = has_common_round_ && !job.is_state;
    const auto group = static_cast<std::uint64_t>(first_of_group(job.round));
    return {.label = (group << 48U) | (bucket << 32U) | (job.round << 1U) | (job.is_state ? 1U : 0U),
            .shortest = is_small ? Codec::kInt4 : Codec::kBfloat16};
  }

  bool warming_up() const { return iteration() < options_.warmup_iterations; }

  // A round's chain keeps the whole program alive.
  std::shared_ptr<const Chain> chain_of(std::size_t round) {
    return warming_up() ? everyone() : std::shared_ptr<const Chain>(program_, &program_->chains[round]);
  }

  // What an iteration keeps the network busy.
  Seconds together() {
    return warming_up() ? Seconds(model_bytes() * everyone()->seconds_per_byte)
                        : Seconds(program_->plan.cost.seconds_per_iteration - program_->plan.cost.latency_seconds);
  }

  bool is_under_way() const {
    return std::any_of(under_way_.begin(), under_way_.end(), [](const auto& bucket) { return bucket.has_value(); });
  }

  // The averages of one bucket. What takes longest comes first, so that it doesn't end last.
  void start(std::size_t bucket) {
    is_dropped_ = false;
    started_at_ = iteration();
    sets_->gather(bucket);
    const Bucket& stretch = sets_->buckets()[bucket];
    moves_.note(bucket, {stretch.flat, stretch.begin, stretch.end});
    std::vector<AveragingJob> jobs = sets_->prepare(bucket, program_->schedule, iteration(),
                                                    [this](std::size_t round) { return turnout_of(round); });
    std::stable_sort(jobs.begin(), jobs.end(), [this](const AveragingJob& a, const AveragingJob& b) {
      return chain_of(a.round)->urgency > chain_of(b.round)->urgency;
    });
    UnderWay& started = under_way_[bucket].emplace();
    for (const AveragingJob& job : jobs) {
      started.averages.push_back(
          engine_.average(job.slices, chain_of(job.round), iteration(), together(), travel_of(bucket, job)));
    }
    for (const std::size_t parameter : stretch.parameters) started.versions.push_back(version_of(parameter));
    if (infers_momentum()) started.steps = replica_.adam_steps(stretch.parameters);
  }

  // Waits for the averages of one bucket, and takes them over.
  void finish(std::size_t bucket) {
    if (!under_way_[bucket]->averages.empty()) {
      wait(under_way_[bucket]->averages);
      sets_->complete(bucket);
      if (!is_dropped_) check_unchanged(bucket);
      if (!is_dropped_) take_over(bucket);
    }
    under_way_[bucket].reset();
  }

  bool infers_momentum() const {
    return options_.method == Method::kDsSync && options_.state == StateTreatment::kInferred;
  }

  void take_over(std::size_t bucket) {
    if (!infers_momentum()) return sets_->take_over(bucket, {});
    sets_->take_over(bucket, [&](const FlatSlice& slice, const TakeOver::Move& move) {
      infer(under_way_[bucket]->steps, slice, move);
    });
  }

  // Shard by shard: each met everyone at another time.
  void infer(const std::vector<AdamStep>& steps, const FlatSlice& slice, const TakeOver::Move& move) const {
    const ScheduleProgram& schedule = program_->schedule;
    const std::int64_t size = parameters_.flats()[slice.flat].vector.numel();
    for (int shard = 0; shard < schedule.shards(); ++shard) {
      const auto [begin, end] = schedule.stretch_of(size, shard);
      const FlatSlice part{slice.flat, std::max(begin, slice.begin), std::min(end, slice.end)};
      if (part.begin >= part.end) continue;
      const std::int64_t in_schedule = started_at_ - options_.warmup_iterations + 1;
      const std::int64_t since = std::clamp<std::int64_t>(schedule.since_common(started_at_, shard), 1,
                                                          std::max<std::int64_t>(1, in_schedule));
      momentum_->apply(steps, slice, move, part, since);
    }
  }

  std::int64_t version_of(std::size_t parameter) const {
    return static_cast<std::int64_t>(replica_.parameters[parameter].tensor._version());
  }

  // A value that was written since the average started would be lost.
  void check_unchanged(std::size_t bucket) const {
    const std::vector<std::size_t>& parameters = sets_->buckets()[bucket].parameters;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      if (version_of(parameters[index]) == under_way_[bucket]->versions[index]) continue;
      throw Error(
          fmt::format("'{}' was changed between the step and the next forward pass, while it was averaged; "
                      "await it first",
                      replica_.parameters[parameters[index]].name));
    }
  }

  // A consolidation came in between: nobody wants the correction any more.
  void give_up() {
    wait();
    for (auto& bucket : under_way_) bucket.reset();
  }

  void combine() {
    if (!is_under_way()) throw Error("after_step() without before_forward()");
    after_step_of(every_parameter_);
    sets_->gather();
    for (std::size_t bucket = 0; bucket < under_way_.size(); ++bucket) {
      const Bucket& stretch = sets_->buckets()[bucket];
      moves_.note(bucket, {stretch.flat, stretch.begin, stretch.end});
    }
    wait();
    for (std::size_t bucket = 0; bucket < under_way_.size(); ++bucket) {
      sets_->complete(bucket);
      if (!is_dropped_) take_over(bucket);
      under_way_[bucket].reset();
    }
  }

  // These have just been stepped by the optimizer.
  void after_step_of(const std::vector<std::size_t>& parameters) {
    if (noise_treatment() == NoiseTreatment::kCorrected) correction_->apply(replica_.adam_steps(parameters));
  }

  // While the backward pass runs: all gradients of the bucket are there.
  void step_early(std::size_t bucket) {
    if (done_) timed([this] { settle(); });  // the iteration before: averages of two never run at the same time
    const std::vector<std::size_t>& parameters = sets_->buckets()[bucket].parameters;
    replica_.step(parameters);
    after_step_of(parameters);
    is_stepped_[bucket] = true;
    timed([this] {
      while (next_to_start_ < order_.size() && is_stepped_[order_[next_to_start_]]) start(order_[next_to_start_++]);
    });
  }

  void finish_backward() {
    if (!steps_->has_begun()) throw Error("after_backward() without before_forward()");
    steps_->finish_backward();
    if (!steps_->steps()) settle();
    is_awaited_ = true;
    for (std::size_t index = 0; index < awaited_.size(); ++index) {
      if (steps_->has_gradient()[index] && !awaited_[index]) is_awaited_ = false;
    }
  }

  void drop_gradients() {
    for (NamedTensor& parameter : replica_.parameters) parameter.tensor.mutable_grad() = at::Tensor();
  }

  // Steps are made early on all workers or on none: averages start in the same order everywhere.
  void agree_on_steps() {
    if (parameters_.flats().empty()) return;
    const bool can_step = steps_->can_step() && replica_.step && !inside_;
    const at::Tensor figures = at::tensor({can_step ? 1.0 : 0.0, compute_seconds_}, at::kDouble)
                                   .to(parameters_.flats().front().vector.options());
    wait({engine_.average(figures, everyone(), iteration(), Seconds(0))});
    steps_->set_agreed(figures[0].item<double>() > 1 - 0.5 / world_.size());
    agreed_compute_ = Seconds(figures[1].item<double>());
    arrange();
  }

  // Its averages are done, and it is over.
  void finish_iteration() {
    const auto [move, norm] = moves_.measure();
    metrics_.disagreement = done_->iteration < options_.warmup_iterations ? 0 : meter_->add(move);
    metrics_.parameter_norm = std::sqrt(norm);
    done_->uses = engine_.take_stage_uses();
    done_->disagreement = metrics_.disagreement;
    done_->parameter_norm = metrics_.parameter_norm;
    if (adaptation_) adaptation_->add(std::move(*done_));
    done_.reset();
  }

  // The averages of a bucket that were started and not taken over.
  struct UnderWay {
    std::vector<AverageId> averages;
    std::vector<std::int64_t> versions;  // of its parameters
    std::vector<AdamStep> steps;         // of its parameters, with the rates that they were made with
  };

  SyncOptions options_;  // with what was left to choose decided
  std::optional<NoiseCorrection> correction_;
  std::optional<InferredMomentum> momentum_;
  std::int64_t started_at_ = 0;  // iteration of the averages that were started last
  std::optional<GradientNoise> noise_;
  std::shared_ptr<const Chain> inside_chain_;  // of the gradients of this worker's region; null where it is alone
  std::optional<GradientAverages> inside_;     // likewise
  double gradient_seconds_ = 0;                // of the iteration, that these kept the training thread
  MoveSample moves_;
  std::vector<std::size_t> every_parameter_;               // by index
  std::unordered_map<const void*, std::size_t> index_of_;  // by parameter
  std::optional<AveragedSets> sets_;
  std::optional<Reference> reference_;              // where plans have, or had, codecs
  bool shares_reference_ = false;                   // rank 0's has to be handed to the others
  bool has_common_round_ = true;                    // everyone averages in some round of the plan
  std::vector<std::optional<UnderWay>> under_way_;  // by bucket
  bool is_dropped_ = false;                         // what is under way is of no use
  std::vector<std::size_t> order_;                  // of buckets that are stepped early
  std::vector<bool> is_stepped_;                    // by bucket, in this iteration
  std::size_t next_to_start_ = 0;                   // in order_
  std::vector<bool> awaited_;                       // by parameter, in this iteration
  bool is_awaited_ = false;                         // the last forward pass awaited all that it used
  std::optional<EarlySteps> steps_;                 // layered
  std::optional<IterationRecord> done_;             // the last iteration, until its averages are taken over
  Seconds agreed_compute_{0};
  double compute_seconds_ = 0;                  // of this worker in the last iteration
  std::shared_ptr<const PlanProgram> program_;  // what it follows now
  std::optional<DisagreementMeter> meter_;      // of this program
  std::vector<PlanChange> changes_;
  std::optional<Adaptation> adaptation_;
};

}  // namespace

std::unique_ptr<Synchronizer> make_ds_sync(World& world, const Replica& replica, const Topology& topology,
                                           const SyncOptions& options, Timeline* timeline) {
  return std::make_unique<DsSync>(world, replica, topology, options, timeline);
}

}  // namespace dssync
