// The training loop. What comes when: an iteration; where due, consolidating and evaluating; where due, a checkpoint. A
// checkpoint holds every worker's own values and does not consolidate, so that saving changes nothing.
#include "dssync/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>

#include "dssync/base/error.h"
#include "dssync/base/version.h"
#include "dssync/method/cost.h"
#include "dssync/training/checkpoint_folder.h"
#include "dssync/training/evaluation.h"
#include "dssync/training/exchange.h"
#include "dssync/training/learning_rate.h"
#include "dssync/training/models.h"
#include "dssync/training/optimizers.h"
#include "dssync/training/pace.h"
#include "dssync/training/sharded_batches.h"
#include "dssync/training/threads.h"
#include "dssync/training/trace_file.h"
#include "dssync/training/traffic_meter.h"
#include "dssync/training/train_options.h"

namespace dssync {
namespace {

double seconds_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// Into tensors that stay where they are: the synchronizer made them views.
void copy_into(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& values, const char* what) {
  const torch::NoGradGuard no_grad;
  if (targets.size() != values.size()) {
    throw Error(fmt::format("the checkpoint has {} {}, the model {}", values.size(), what, targets.size()));
  }
  for (std::size_t index = 0; index < targets.size(); ++index) {
    const auto& [name, value] = values[index];
    at::Tensor target = targets[index].tensor;
    if (name != targets[index].name || value.sizes() != target.sizes()) {
      throw Error(fmt::format("the checkpoint has {} of another shape than the model's {}", name, targets[index].name));
    }
    target.copy_(value);
  }
}

std::vector<NamedTensor> parameters_of(const Model& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_parameters()) tensors.push_back({item.key(), item.value()});
  return tensors;
}

std::vector<NamedTensor> buffers_of(const Model& model) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : model.named_buffers()) tensors.push_back({item.key(), item.value()});
  return tensors;
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
        sync_options_(sync),
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
    load_examples();
    make_parts();
    prepare_checkpoints(identity);
    make_sync();
    report_start();
  }

  void open_log() {
    if (world_.rank() != 0 || options_.log.empty()) return;
    log_ = std::make_shared<RunLog>(options_.log, options_.resume ? RunLog::Mode::kAppend : RunLog::Mode::kReplace);
    progress_.log_opened(log_);
  }

  void load_examples() {
    data_ = load_data(options_.data, options_.data_folder, options_.train_examples, options_.test_examples);
    batches_.emplace(data_.train.size(), options_.batch_size, world_.rank(), world_.size(), options_.seed);
    total_iterations_ = batches_->per_epoch() * options_.epochs;
    const double warmup = std::round(options_.warmup_epochs * static_cast<double>(batches_->per_epoch()));
    rate_ = {peak_learning_rate(options_),
             std::min(total_iterations_, static_cast<std::int64_t>(std::min(warmup, 1e15))), total_iterations_};
  }

  void make_parts() {
    const auto& images = data_.train.images;
    model_ = make_model(options_.model, options_.seed, {images.size(1), images.size(2), images.size(3)},
                        data_.train.classes, options_.hidden);
    model_->train();
    optimizer_ = make_optimizer(optimizer_settings(), *model_);
    pace_.emplace(*model_, options_.compute);
  }

  // Learns from rank 0 which checkpoint is the latest, and loads it to resume.
  void prepare_checkpoints(RunIdentity identity) {
    if (options_.checkpoint_folder.empty()) return;
    folder_.emplace(options_.checkpoint_folder, world_.rank());
    saved_.identity = std::move(identity);
    saved_.rank = world_.rank();
    saved_.name = exchange_->broadcast("latest checkpoint", world_.rank() == 0 ? folder_->latest() : "");
    run_number_ = std::stoull(exchange_->broadcast("number of the run", std::to_string(std::random_device()())));
    if (options_.resume) load();
  }

  void load() {
    if (saved_.name.empty()) {
      throw InputError(options_.checkpoint_folder, 0, "there is no checkpoint to go on from");
    }
    Checkpoint loaded = read_checkpoint(folder_->file_of(saved_.name), saved_.name, world_.rank());
    check_identity(folder_->file_of(saved_.name), loaded.identity, saved_.identity);
    saved_ = std::move(loaded);
    iteration_ = first_iteration_ = saved_.iteration;
    earlier_seconds_ = saved_.seconds;
    training_seconds_ = earlier_training_seconds_ = saved_.training_seconds;
    restore_values();
  }

  void restore_values() {
    copy_into(parameters_of(*model_), saved_.parameters, "parameters");
    copy_into(buffers_of(*model_), saved_.buffers, "buffers");
  }

  OptimizerSettings optimizer_settings() const {
    return {options_.optimizer, rate_.peak, options_.momentum, options_.weight_decay};
  }

  void make_sync() {
    if (!options_.trace.empty()) {
      timeline_.emplace(options_.trace_spans);
      origin_ = common_origin(*exchange_);
    }
    sync_ = make_synchronizer(world_, replica_of(*model_, *optimizer_), topology_, sync_options_, timeline());
    if (!options_.resume) return;
    // Once before, so that what the synchronizer copied is not the new model's, and once more because it gave all
    // workers rank 0's values.
    restore_values();
    restore_state(*model_, *optimizer_, saved_.optimizer);
    sync_->load_state(saved_.sync);
  }

  void report_start() {
    const std::int64_t count = parameter_count(*model_);
    StartReport report{.version = std::string(kVersion),
                       .method = name_of(sync_options_.method),
                       .model = options_.model,
                       .data = options_.data,
                       .workers = world_.size(),
                       .seed = options_.seed,
                       .parameters = count,
                       .model_bytes = count * static_cast<std::int64_t>(sizeof(float)),
                       .train_examples = data_.train.size(),
                       .test_examples = data_.test.size(),
                       .iterations_per_epoch = batches_->per_epoch(),
                       .total_iterations = total_iterations_,
                       .first_iteration = iteration_,
                       .options = fields_of(options_, sync_options_),
                       .plan = {},
                       .command = options_.surroundings.command};
    if (sync_->plan() != nullptr) report.plan = fields_of(*sync_->plan(), topology_);
    if (log_) {
      log_->started(report);
      const double bytes = static_cast<double>(report.model_bytes) *
                           volume_of_average(sync_options_, states_per_parameter(optimizer_settings()));
      log_->network({&topology_, options_.surroundings.network, options_.surroundings.emulated, sync_->plan(),
                     method_cost(sync_options_.method, topology_, bytes, sync_->plan())});
    }
    progress_.started(report);
  }

  void train_once() {
    const double rate = rate_.at(iteration_);
    set_learning_rate(*optimizer_, rate);
    const Clock::time_point start = Clock::now();
    sync_->before_forward();
    report_plan_changes();
    const Clock::time_point computing = Clock::now();
    const double loss = compute_gradient();
    const Clock::time_point computed = Clock::now();
    sync_->after_backward();
    const Clock::time_point stepping = Clock::now();
    optimizer_->step();
    const Clock::time_point stepped = Clock::now();
    sync_->after_step();
    const Clock::time_point end = Clock::now();
    record("forward and backward", computing, computed);
    record("optimizer's step", stepping, stepped);
    ++iteration_;
    report_iteration(loss, rate, seconds_between(start, end),
                     seconds_between(computing, computed) + seconds_between(stepping, stepped));
  }

  // Returns the loss.
  double compute_gradient() {
    pace_->begin();
    const std::int64_t per_epoch = batches_->per_epoch();
    const Batch batch = data_.train.batch(batches_->batch(iteration_ / per_epoch, iteration_ % per_epoch));
    optimizer_->zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(model_->forward(batch.images), batch.labels);
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
                                 .total_iterations = total_iterations_,
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
                                 .relative_disagreement = norm > 0 ? std::sqrt(metrics.disagreement) / norm : 0};
    if (log_) log_->iteration(report);
    progress_.iteration(report);
  }

  void report_plan_changes() {
    for (PlanEvent& event : sync_->take_plan_events()) {
      ++plan_changes_;
      const ReplanReport report{event.iteration, seconds_now(), std::move(event.change)};
      if (log_) log_->replanned(report);
      progress_.replanned(report);
    }
  }

  bool evaluation_due() const {
    const std::int64_t epoch_interval = batches_->per_epoch() * options_.evaluate_every;
    const std::int64_t interval = options_.evaluate_every_iterations;
    return iteration_ == total_iterations_ || (epoch_interval > 0 && iteration_ % epoch_interval == 0) ||
           (interval > 0 && iteration_ % interval == 0);
  }

  // Every worker tests its part of the examples with the model that all of them have now.
  void evaluate_together() {
    traffic_.stop();
    const double distance = sync_->consolidate();
    const Clock::time_point start = Clock::now();
    const Share share = share_of(data_.test.size(), world_.rank(), world_.size());
    Score own = evaluate(*model_, data_.test, share.first, share.last);
    own.disagreement = distance;
    if (!std::isfinite(own.loss)) throw no_number("the test loss", own.loss, iteration_);
    record("evaluation", start, Clock::now());
    const Score score = add_up(*exchange_, own);
    evaluated_at_ = iteration_;
    last_evaluation_ = {.epoch = epoch(),
                        .iteration = iteration_,
                        .seconds = seconds_now(),
                        .training_seconds = training_seconds_,
                        .test_accuracy = score.accuracy(),
                        .test_loss = score.mean_loss(),
                        .consolidated_disagreement = score.disagreement / world_.size()};
    if (log_) log_->evaluated(last_evaluation_);
    if (log_ && !traffic_.bytes().empty()) {
      log_->traffic({iteration_, iteration_ - first_iteration_, training_seconds_ - earlier_training_seconds_,
                     &topology_, traffic_.bytes()});
    }
    progress_.evaluated(last_evaluation_);
    traffic_.start();
  }

  bool checkpoint_due() const {
    if (!folder_) return false;
    const std::int64_t epoch_interval = batches_->per_epoch() * options_.checkpoint_every_epochs;
    const std::int64_t interval = options_.checkpoint_every_iterations;
    return iteration_ == last_iteration() || (epoch_interval > 0 && iteration_ % epoch_interval == 0) ||
           (interval > 0 && iteration_ % interval == 0);
  }

  void save() {
    const Clock::time_point start = Clock::now();
    if (info_of(sync_options_.method).saves_consolidated) sync_->consolidate();
    const std::string previous = std::exchange(saved_.name, CheckpointFolder::name_for(iteration_, run_number_));
    collect_values();
    const std::int64_t bytes = folder_->save(saved_);
    saved_.parameters.clear();
    saved_.buffers.clear();
    saved_.optimizer.clear();
    saved_.sync.tensors.clear();
    exchange_->meet("saved a checkpoint");
    if (world_.rank() == 0) folder_->publish(saved_.name);
    folder_->keep_only(saved_.name, previous);
    // Nobody may begin the next one while others still remove what is not this one.
    exchange_->meet("published a checkpoint");
    const CheckpointReport report{.epoch = epoch(),
                                  .iteration = iteration_,
                                  .seconds = seconds_now(),
                                  .saving_seconds = seconds_between(start, Clock::now()),
                                  .bytes = bytes,
                                  .folder = folder_->path_of(saved_.name).string()};
    if (log_) log_->checkpoint(report);
    progress_.checkpoint(report);
  }

  void collect_values() {
    saved_.iteration = iteration_;
    saved_.epoch = iteration_ / batches_->per_epoch();
    saved_.seconds = seconds_now();
    saved_.training_seconds = training_seconds_;
    saved_.parameters = parameters_of(*model_);
    saved_.buffers = buffers_of(*model_);
    saved_.optimizer = saved_state(*model_, *optimizer_);
    saved_.sync = sync_->state();
  }

  TrainResult finish() {
    const double seconds = seconds_now();
    if (timeline_) write_trace(*exchange_, world_.rank(), *timeline_, origin_, options_.trace);
    const TrainResult result{.method = name_of(sync_options_.method),
                             .iterations = iteration_,
                             .total_iterations = total_iterations_,
                             .epochs = iteration_ / batches_->per_epoch(),
                             .seconds = seconds,
                             .training_seconds = training_seconds_,
                             .test_accuracy = last_evaluation_.test_accuracy,
                             .test_loss = last_evaluation_.test_loss,
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

  std::int64_t last_iteration() const {
    return options_.max_iterations > 0 ? std::min(options_.max_iterations, total_iterations_) : total_iterations_;
  }

  // The epoch of the last iteration, from 1.
  std::int64_t epoch() const { return iteration_ == 0 ? 0 : (iteration_ - 1) / batches_->per_epoch() + 1; }

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
  Datasets data_;
  std::optional<ShardedBatches> batches_;
  std::int64_t total_iterations_ = 0;
  LearningRate rate_;

  std::shared_ptr<Model> model_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::optional<Pace> pace_;
  std::optional<Timeline> timeline_;
  Clock::time_point origin_;
  std::unique_ptr<Synchronizer> sync_;

  std::optional<CheckpointFolder> folder_;
  std::uint64_t run_number_ = 0;
  Checkpoint saved_;  // the last one; its tensors only while it is written or loaded

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
