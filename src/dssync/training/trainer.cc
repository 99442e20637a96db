// The training loop. What comes when: an iteration; where due, consolidating and evaluating; where due, a checkpoint. A
// checkpoint holds every worker's own values and does not consolidate, so that saving changes nothing.
#include "dssync/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/version.h"
#include "dssync/method/cost.h"
#include "dssync/training/exchange.h"
#include "dssync/training/named_values.h"
#include "dssync/training/option_fields.h"
#include "dssync/training/pace.h"
#include "dssync/training/run_checkpoints.h"
#include "dssync/training/threads.h"
#include "dssync/training/trace_file.h"
#include "dssync/training/traffic_meter.h"
#include "dssync/training/weight_mean.h"
#include "dssync/training/workload.h"

namespace dssync {
namespace {

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// Whether something that comes every so many iterations, and every so many others, comes now. 0: never.
bool comes_now(std::int64_t iteration, std::int64_t interval, std::int64_t other_interval) {
  return (interval > 0 && iteration % interval == 0) || (other_interval > 0 && iteration % other_interval == 0);
}

// What is emulated is known beforehand.
SyncOptions with_compute(SyncOptions sync, Seconds compute) {
  sync.compute = compute;
  return sync;
}

// One run on one worker. Its parts are made one after another by prepare(), and live until it is destroyed, so that a
// failure can still be told to the others.
class Training {
 public:
  Training(World& world, const Topology& topology, const TrainOptions& options, const SyncOptions& sync,
           ProgressSink* progress)
      : world_(world),
        topology_(topology),
        options_(options),
        sync_options_(with_compute(sync, options.compute)),
        progress_(progress != nullptr ? *progress : nobody_),
        traffic_(world.rank() == 0 ? options.surroundings.count : nullptr) {}

  TrainResult run() {
    prepare();
    traffic_.start();
    start_ = Clock::now();
    while (iteration_ < last_iteration()) {
      train_once();
      if (evaluation_due()) evaluate_together();
      if (checkpoint_due()) save();
    }
    if (evaluated_at_ != iteration_) evaluate_together();
    return finish();
  }

  void give_up(const std::string& cause, bool tell_others) noexcept {
    if (tell_others) world_.report_failure(cause);
    world_.abandon_channels();
    try {
      if (log_) log_->failed(cause);
    } catch (const std::exception&) {
      // The first failure is the one to report; often it is this very log.
    }
  }

 private:
  void prepare() {
    check(options_);
    use_threads(options_.threads);
    open_log();
    exchange_.emplace(world_);
    const RunIdentity identity = identity_of(options_, sync_options_, world_.size());
    world_.agree("training options", promises_of(options_, identity));
    make_parts();
    if (!options_.checkpoint_folder.empty()) {
      checkpoints_.emplace(world_, *exchange_, options_.checkpoint_folder, identity);
      if (options_.resume) load();
    }
    make_sync();
    report_start();
  }

  void open_log() {
    if (world_.rank() != 0 || options_.log.empty()) return;
    log_ = std::make_shared<RunLog>(options_.log, options_.resume ? RunLog::Mode::kAppend : RunLog::Mode::kReplace);
    progress_.log_opened(log_);
  }

  void make_parts() {
    workload_.emplace(options_, world_.rank(), world_.size());
    rate_ = learning_rate_of(options_, workload_->iterations_per_epoch());
    optimizer_ = make_optimizer(optimizer_settings(), model());
    pace_.emplace(model(), options_.compute);
  }

  void load() {
    loaded_ = checkpoints_->load();
    iteration_ = first_iteration_ = loaded_.iteration;
    earlier_seconds_ = loaded_.seconds;
    training_seconds_ = earlier_training_seconds_ = loaded_.training_seconds;
    mean_.restore(std::move(loaded_.mean), loaded_.mean_count);
    mean_taken_at_ = iteration_;
    restore_values();
  }

  void restore_values() {
    copy_into(named_parameters_of(model()), loaded_.parameters, "parameters");
    copy_into(named_buffers_of(model()), loaded_.buffers, "buffers");
  }

  OptimizerSettings optimizer_settings() const {
    return {options_.optimizer, rate_.peak, options_.momentum, options_.weight_decay, options_.betas};
  }

  void make_sync() {
    if (!options_.trace.empty()) {
      timeline_.emplace(options_.trace_spans);
      origin_ = common_origin(*exchange_);
    }
    Replica replica = replica_of(model(), *optimizer_);
    replica.step = [this, step = replica.step](const std::vector<std::size_t>& parameters) {
      without_pace([&] { step(parameters); });
    };
    sync_ = make_synchronizer(world_, replica, topology_, sync_options_, timeline());
    if (!options_.resume) return;
    // Once before, so that what the synchronizer copied is not the new model's, and once more because it gave all
    // workers rank 0's values.
    restore_values();
    restore_state(model(), *optimizer_, loaded_.optimizer);
    sync_->load_state(loaded_.sync);
    loaded_ = {};
  }

  void report_start() {
    const std::int64_t count = parameter_count(model());
    SyncOptions sync = sync_options_;
    sync.overlap = sync_->overlap();
    StartReport report{.version = std::string(kVersion),
                       .method = name_of(sync_options_.method),
                       .model = options_.model.name,
                       .data = options_.data.name,
                       .examples_word = examples_word(shape_of(options_.data)),
                       .workers = world_.size(),
                       .seed = options_.seed,
                       .parameters = count,
                       .model_bytes = count * static_cast<std::int64_t>(sizeof(float)),
                       .train_examples = workload_->train_examples(),
                       .test_examples = workload_->test_examples(),
                       .iterations_per_epoch = workload_->iterations_per_epoch(),
                       .total_iterations = rate_.total_iterations,
                       .first_iteration = iteration_,
                       .options = fields_of(options_, sync),
                       .plan = {},
                       .noise = name_of(sync_->noise_treatment()),
                       .command = options_.surroundings.command};
    if (sync_->plan() != nullptr) {
      report.plan = fields_of(*sync_->plan(), topology_);
      report.plan.emplace_back("total_disagreement", sync_->planned_disagreement());
    }
    if (log_) {
      log_->started(report);
      const double bytes = static_cast<double>(report.model_bytes) *
                           volume_of_average(sync_options_, states_per_parameter(optimizer_settings()));
      log_->network({&topology_, options_.surroundings.network, options_.surroundings.emulated, sync_->plan(),
                     sync_->planned_disagreement(),
                     method_cost(sync_options_.method, topology_, bytes, sync_->plan(), sync_options_.codec_choice())});
    }
    progress_.started(report);
  }

  void train_once() {
    const double rate = rate_.at(iteration_);
    set_learning_rate(*optimizer_, rate);
    const Clock::time_point start = Clock::now();
    sync_->before_forward();
    report_plan_changes();
    const double kept_before = sync_->metrics().sync_seconds;
    const Clock::time_point computing = Clock::now();
    const double loss = compute_gradient();
    const Clock::time_point computed = Clock::now();
    const double kept_meanwhile = sync_->metrics().sync_seconds - kept_before;
    sync_->after_backward();
    if (options_.clip_norm > 0) sync_->clip_gradients(options_.clip_norm);
    const Clock::time_point stepping = Clock::now();
    optimizer_->step();
    const Clock::time_point stepped = Clock::now();
    sync_->after_step();
    const Clock::time_point end = Clock::now();
    record("forward and backward", computing, computed);
    record("optimizer's step", stepping, stepped);
    ++iteration_;
    report_iteration(loss, rate, seconds_between(start, end),
                     seconds_between(computing, computed) - kept_meanwhile + seconds_between(stepping, stepped));
  }

  // It keeps the training from computing.
  template <typename Action>
  void without_pace(Action action) {
    const Clock::time_point start = Clock::now();
    action();
    pace_->exclude(Clock::now() - start);
  }

  // The forward pass, in which every layer waits for its parameters.
  at::Tensor loss() {
    std::size_t done = 0;
    return workload_->loss(iteration_, [&](const Layer& layer) {
      pace_->layers_done(done++, model().layers().size());
      without_pace([&] { sync_->await(layer.module->parameters()); });
    });
  }

  // The parameters after the last iteration count towards the mean, once nothing is under way that changes them: after
  // the next forward pass, or when the run is evaluated or saved.
  void take_mean() {
    if (options_.swa_start == 0 || iteration_ < options_.swa_start || mean_taken_at_ == iteration_) return;
    mean_.add(model());
    mean_taken_at_ = iteration_;
  }

  // Returns the loss.
  double compute_gradient() {
    pace_->begin();
    optimizer_->zero_grad();
    const at::Tensor loss = this->loss();
    take_mean();
    const double value = loss.item<double>();
    // Before the gradient is computed: it must not reach the others.
    if (!std::isfinite(value)) throw no_number("the loss", value, iteration_ + 1);
    pace_->forward_done();
    loss.backward();
    pace_->backward_done();
    return value;
  }

  Error no_number(const char* what, double value, std::int64_t iteration) const {
    return Error(fmt::format("rank {}: {} is {} in iteration {}; a smaller learning rate than {} may help",
                             world_.rank(), what, value, iteration, rate_.peak));
  }

  void report_iteration(double loss, double rate, double seconds, double compute_seconds) {
    training_seconds_ += seconds;
    const SyncMetrics& metrics = sync_->metrics();
    const double norm = metrics.parameter_norm;
    const double images = static_cast<double>(options_.batch_size) * world_.size();
    const IterationReport report{.epoch = epoch(),
                                 .iteration = iteration_,
                                 .total_iterations = rate_.total_iterations,
                                 .loss = loss,
                                 .learning_rate = rate,
                                 .seconds = seconds_now(),
                                 .iteration_seconds = seconds,
                                 .compute_seconds = compute_seconds,
                                 .sync_seconds = metrics.sync_seconds,
                                 .wait_seconds = metrics.wait_seconds,
                                 .images_per_second = images / std::max(seconds, 1e-9),
                                 .bytes_sent = metrics.bytes_sent,
                                 .disagreement = metrics.disagreement,
                                 .noise_ratio = metrics.noise_ratio,
                                 .relative_disagreement = norm > 0 ? std::sqrt(metrics.disagreement) / norm : 0};
    tell(&RunLog::iteration, &ProgressSink::iteration, report);
  }

  void report_plan_changes() {
    for (const PlanChange& change : sync_->take_plan_changes()) {
      ++plan_changes_;
      if (log_) log_->replanned(change, seconds_now());
      progress_.replanned(change);
    }
  }

  template <typename Report>
  void tell(void (RunLog::*write)(const Report&), void (ProgressSink::*watch)(const Report&), const Report& report) {
    if (log_) ((*log_).*write)(report);
    (progress_.*watch)(report);
  }

  bool evaluation_due() const {
    return iteration_ == rate_.total_iterations ||
           comes_now(iteration_, workload_->iterations_per_epoch() * options_.evaluate_every,
                     options_.evaluate_every_iterations);
  }

  // Every worker tests its part of the examples with the model that all of them have now.
  void evaluate_together() {
    traffic_.stop();
    const double distance = sync_->consolidate();
    take_mean();
    const Score score = test_together("evaluation", distance);
    evaluated_at_ = iteration_;
    last_evaluation_ = {.epoch = epoch(),
                        .iteration = iteration_,
                        .seconds = 0,
                        .training_seconds = training_seconds_,
                        .test_accuracy = score.accuracy(),
                        .test_loss = score.mean_loss(),
                        .test_auc = score.area,
                        .swa = {},
                        .consolidated_disagreement = score.disagreement / world_.size()};
    if (mean_.count() > 0) last_evaluation_.swa = test_mean();
    last_evaluation_.seconds = seconds_now();
    tell(&RunLog::evaluated, &ProgressSink::evaluated, last_evaluation_);
    if (log_ && !traffic_.bytes().empty()) {
      log_->traffic({iteration_, iteration_ - first_iteration_, training_seconds_ - earlier_training_seconds_,
                     &topology_, traffic_.bytes()});
    }
    traffic_.start();
  }

  Score test_together(const char* what, double distance) {
    const Clock::time_point start = Clock::now();
    Score own = workload_->test();
    own.disagreement = distance;
    if (!std::isfinite(own.loss)) throw no_number("the test loss", own.loss, iteration_);
    record(what, start, Clock::now());
    return add_up(*exchange_, own, workload_->task());
  }

  // The mean of all workers' means takes the model's place for a test. Consolidating came before.
  SwaReport test_mean() {
    const auto parameters = named_parameters_of(model());
    const auto buffers = named_buffers_of(model());
    const auto own_parameters = copies_of(parameters);
    const auto own_buffers = copies_of(buffers);
    const auto mean = copies_of(mean_.values());
    sync_->average_everyone(mean);
    copy_into(parameters, mean, "parameters");
    if (!buffers.empty()) {
      workload_->recompute_statistics(iteration_);
      sync_->average_everyone(buffers);
    }
    const Score score = test_together("evaluation of the mean", 0);
    copy_into(parameters, own_parameters, "parameters");
    copy_into(buffers, own_buffers, "buffers");
    return {mean_.count(), score.accuracy(), score.mean_loss(), score.area};
  }

  bool checkpoint_due() const {
    return checkpoints_ && (iteration_ == last_iteration() ||
                            comes_now(iteration_, workload_->iterations_per_epoch() * options_.checkpoint_every_epochs,
                                      options_.checkpoint_every_iterations));
  }

  void save() {
    const Clock::time_point start = Clock::now();
    if (info_of(sync_options_.method).saves_consolidated) sync_->consolidate();
    const RunCheckpoints::Saved saved = checkpoints_->save(collected_values());
    const CheckpointReport report{.epoch = epoch(),
                                  .iteration = iteration_,
                                  .seconds = seconds_now(),
                                  .saving_seconds = seconds_between(start, Clock::now()),
                                  .bytes = saved.bytes,
                                  .folder = saved.folder.string()};
    tell(&RunLog::checkpoint, &ProgressSink::checkpoint, report);
  }

  Checkpoint collected_values() {
    Checkpoint values;
    values.sync = sync_->state();  // first: it waits for averages
    take_mean();
    values.iteration = iteration_;
    values.epoch = iteration_ / workload_->iterations_per_epoch();
    values.seconds = seconds_now();
    values.training_seconds = training_seconds_;
    values.parameters = named_parameters_of(model());
    values.buffers = named_buffers_of(model());
    values.optimizer = saved_state(model(), *optimizer_);
    values.mean = mean_.values();
    values.mean_count = mean_.count();
    return values;
  }

  TrainResult finish() {
    const double seconds = seconds_now();
    if (timeline_) write_trace(*exchange_, world_.rank(), *timeline_, origin_, options_.trace);
    const TrainResult result{.method = name_of(sync_options_.method),
                             .iterations = iteration_,
                             .total_iterations = rate_.total_iterations,
                             .epochs = iteration_ / workload_->iterations_per_epoch(),
                             .seconds = seconds,
                             .training_seconds = training_seconds_,
                             .test_accuracy = last_evaluation_.test_accuracy,
                             .test_loss = last_evaluation_.test_loss,
                             .test_auc = last_evaluation_.test_auc,
                             .swa = last_evaluation_.swa,
                             .plan_changes = plan_changes_};
    if (log_) log_->finished(result);
    return result;
  }

  void record(const char* name, Clock::time_point start, Clock::time_point end) {
    if (timeline_)
      timeline_->record(
          {.kind = Span::Kind::kCompute, .name = name, .iteration = iteration_, .start = start, .end = end});
  }

  Timeline* timeline() { return timeline_ ? &*timeline_ : nullptr; }

  Model& model() { return workload_->model(); }

  std::int64_t last_iteration() const {
    return options_.max_iterations > 0 ? std::min(options_.max_iterations, rate_.total_iterations)
                                       : rate_.total_iterations;
  }

  // The epoch of the last iteration, from 1.
  std::int64_t epoch() const { return iteration_ == 0 ? 0 : (iteration_ - 1) / workload_->iterations_per_epoch() + 1; }

  double seconds_now() const { return earlier_seconds_ + seconds_between(start_, Clock::now()); }

  World& world_;
  const Topology& topology_;
  const TrainOptions options_;
  const SyncOptions sync_options_;
  ProgressSink nobody_;
  ProgressSink& progress_;
  TrafficMeter traffic_;  // rank 0

  std::shared_ptr<RunLog> log_;  // rank 0
  std::optional<Exchange> exchange_;
  std::optional<Workload> workload_;
  LearningRate rate_;

  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<Pace> pace_;
  std::optional<Timeline> timeline_;
  Clock::time_point origin_;
  std::unique_ptr<Synchronizer> sync_;

  WeightMean mean_;
  std::int64_t mean_taken_at_ = 0;  // the last iteration that counts

  std::optional<RunCheckpoints> checkpoints_;
  Checkpoint loaded_;  // while the parts are made

  std::int64_t iteration_ = 0;        // that were done
  std::int64_t first_iteration_ = 0;  // with which this process began
  std::int64_t evaluated_at_ = -1;
  EvaluationReport last_evaluation_;
  Clock::time_point start_;
  double earlier_seconds_ = 0;  // before the run was resumed
  double training_seconds_ = 0;
  double earlier_training_seconds_ = 0;
  std::int64_t plan_changes_ = 0;
};

}  // namespace

TrainResult train(World& world, const Topology& topology, const TrainOptions& options, const SyncOptions& sync,
                  ProgressSink* progress) {
  Training training(world, topology, options, sync, progress);
  try {
    return training.run();
  } catch (const PeerError& error) {
    training.give_up(error.what(), false);
    throw;
  } catch (const Error& error) {
    training.give_up(error.what(), true);
    throw;
  } catch (const std::exception& error) {
    const std::string cause = plain_message(error.what());
    training.give_up(cause, true);
    throw Error(cause);
  }
}

}  // namespace dssync
