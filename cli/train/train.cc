#include "train/train.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/models.h"
#include "dssync/training/optimizers.h"
#include "flags/flags.h"

namespace dssync::cli {
namespace {

constexpr const char* kTrainingGroup = "Training";
constexpr const char* kTrainOutputGroup = "Files and output";

void add_data_flags(CLI::App& app, TrainOptions& training) {
  add_choice(app, "--data", training.data, {"fashion-mnist", "synthetic"},
             "Train on fashion-mnist (default), or on synthetic images, which need no files")
      ->group(kTrainingGroup);
  add_parsed(app, "--data-folder", training.data_folder, parse_path,
             fmt::format("Read fashion-mnist from FOLDER (default {})", kFashionMnistFolder))
      ->type_name("FOLDER")
      ->group(kTrainingGroup);
  add_parsed(app, "--train-examples", training.train_examples, whole_number_from<std::int64_t>(1),
             "Train with the first N images only (default: all)")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--test-examples", training.test_examples, whole_number_from<std::int64_t>(1),
             "Test with the first N images only (default: all)")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_choice(app, "--model", training.model, model_names(), "Train this model (default " + training.model + ")")
      ->group(kTrainingGroup);
  add_parsed(app, "--hidden", training.hidden, whole_number_from<std::int64_t>(1, 1 << 20),
             fmt::format("mlp: give its first layer so many units, for a larger model (default {})", training.hidden))
      ->type_name("UNITS")
      ->group(kTrainingGroup);
  add_parsed(app, "--seed", training.seed, whole_number_from<std::uint64_t>(0),
             "Draw the model's first values and the order of the images from this seed (default 1)")
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_length_flags(CLI::App& app, TrainOptions& training) {
  add_parsed(app, "--epochs", training.epochs, whole_number_from(1),
             fmt::format("Go through all images N times (default {})", training.epochs))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--iterations", training.max_iterations, whole_number_from<std::int64_t>(1),
      "Stop after N iterations, as if interrupted: the learning rate follows --epochs all the same (default: don't)")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--batch", training.batch_size, whole_number_from(1),
             fmt::format("Take N images per worker and iteration (default {})", training.batch_size))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--evaluate-every", training.evaluate_every, whole_number_from(0),
             "Test the model every so many epochs; 0: only at the end (default 1)")
      ->type_name("EPOCHS")
      ->group(kTrainingGroup);
  add_parsed(app, "--evaluate-every-iterations", training.evaluate_every_iterations, whole_number_from<std::int64_t>(1),
             "Also test it every so many iterations (default: don't)")
      ->type_name("ITERATIONS")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--compute", training.compute, parse_duration,
      "Let forward and backward take at least so long, without using the CPU, as if on an accelerator (default 0s)")
      ->type_name("TIME")
      ->group(kTrainingGroup);
  add_parsed(app, "--threads", training.threads, whole_number_from(1, 1024),
             fmt::format("Let torch use N threads in each worker (default {})", training.threads))
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_optimizer_flags(CLI::App& app, TrainOptions& training) {
  add_choice(app, "--optimizer", training.optimizer, optimizer_names(),
             "Use this optimizer (default " + training.optimizer + ")")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--learning-rate", training.learning_rate, parse_positive,
      fmt::format("Let the learning rate climb to RATE, then fall as a cosine (default {} for sgd, {} for adamw)",
                  default_learning_rate("sgd"), default_learning_rate("adamw")))
      ->type_name("RATE")
      ->group(kTrainingGroup);
  add_parsed(app, "--warmup", training.warmup_epochs, parse_nonnegative,
             fmt::format("Let the learning rate climb for so many epochs, or a fraction of one (default {})",
                         training.warmup_epochs))
      ->type_name("EPOCHS")
      ->group(kTrainingGroup);
  add_parsed(app, "--momentum", training.momentum, parse_nonnegative,
             fmt::format("Give sgd this momentum (default {})", training.momentum))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
  add_parsed(app, "--weight-decay", training.weight_decay, parse_nonnegative,
             fmt::format("Give the optimizer this weight decay (default {})", training.weight_decay))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
}

void add_method_flags(CLI::App& app, TrainCommand& command) {
  add_choice(app, "--method", command.method, method_names(),
             "How workers are kept together (default " + command.method + ")")
      ->group(kMethodGroup);
  add_sync_flags(app, command.sync, kMethodGroup, SyncVerb::kTrain);
}

void add_file_flags(CLI::App& app, TrainCommand& command) {
  TrainOptions& training = command.training;
  add_parsed(app, "--log", training.log, parse_path, "Write a line of JSON for every iteration and event to FILE")
      ->type_name("FILE")
      ->group(kTrainOutputGroup);
  add_parsed(app, "--trace", training.trace, parse_path,
             "Write what happened when on every worker to FILE, for Perfetto or chrome://tracing")
      ->type_name("FILE")
      ->group(kTrainOutputGroup);
  add_parsed(app, "--checkpoint", training.checkpoint_folder, parse_path,
             "Save the training in FOLDER, to go on from it with --resume")
      ->type_name("FOLDER")
      ->group(kTrainOutputGroup);
  add_parsed(app, "--checkpoint-every", training.checkpoint_every_epochs, whole_number_from(0),
             "Save it every so many epochs; 0: only at the end (default 1)")
      ->type_name("EPOCHS")
      ->group(kTrainOutputGroup);
  add_parsed(app, "--checkpoint-every-iterations", training.checkpoint_every_iterations,
             whole_number_from<std::int64_t>(1), "Also save it every so many iterations (default: don't)")
      ->type_name("ITERATIONS")
      ->group(kTrainOutputGroup);
  app.add_flag("--resume", training.resume, "Go on from the last checkpoint in --checkpoint")->group(kTrainOutputGroup);
  add_output_flags(app, command.format, command.color);
  for (const char* flag : {"--format", "--color"}) app.get_option(flag)->group(kTrainOutputGroup);
}

bool is_given(const CLI::App& app, const std::string& flag) { return app.get_option(flag)->count() > 0; }

// Throws where `flag` is given though what it is for is not.
void require_for(const CLI::App& app, const std::string& flag, bool is_of_use, const std::string& needed) {
  if (is_given(app, flag) && !is_of_use) throw InputError(fmt::format("{} needs {}", flag, needed));
}

}  // namespace

void add_train_flags(CLI::App& app, TrainCommand& command) {
  add_network_flags(app, command.network, kWorkersGroup);
  add_data_flags(app, command.training);
  add_length_flags(app, command.training);
  add_optimizer_flags(app, command.training);
  add_method_flags(app, command);
  add_file_flags(app, command);
}

void resolve_flags(const CLI::App& app, TrainCommand& command) {
  SyncOptions& sync = command.sync;
  const TrainOptions& training = command.training;
  sync.method = method_from_name(command.method);
  sync.adapt = sync.method == Method::kDsSync && !sync.published;
  complete_sync_options(app, sync, {sync.method});
  require_for(app, "--adapt", !sync.published, "--schedule auto");
  if (sync.steer && !sync.adapt) throw InputError("--disagreement auto needs --adapt");
  const bool is_saving = !training.checkpoint_folder.empty();
  require_for(app, "--data-folder", training.data == "fashion-mnist", "--data fashion-mnist");
  require_for(app, "--hidden", training.model == "mlp", "--model mlp");
  require_for(app, "--momentum", training.optimizer == "sgd", "--optimizer sgd");
  require_for(app, "--state-period", sync.state == StateTreatment::kRotating, "--optimizer-state rotating");
  require_for(app, "--checkpoint-every", is_saving, "--checkpoint");
  require_for(app, "--checkpoint-every-iterations", is_saving, "--checkpoint");
  require_for(app, "--resume", is_saving, "--checkpoint");
  check(training);
}

}  // namespace dssync::cli
