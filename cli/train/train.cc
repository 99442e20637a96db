#include "train/train.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/training/data/clicks.h"
#include "dssync/training/data/images.h"
#include "flags/flags.h"

namespace dssync::cli {
namespace {

constexpr const char* kTrainingGroup = "Training";
constexpr const char* kTrainOutputGroup = "Files and output";

// "0.9,0.95".
Betas parse_betas(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) {
    throw InputError(fmt::format("expected two numbers with a comma, such as 0.9,0.95, but found '{}'", text));
  }
  const Betas betas{parse_nonnegative(text.substr(0, comma)), parse_nonnegative(text.substr(comma + 1))};
  if (betas.first >= 1 || betas.second >= 1)
    throw InputError(fmt::format("expected numbers below 1, but found '{}'", text));
  return betas;
}

void add_data_flags(CLI::App& app, TrainOptions& training) {
  DataOptions& data = training.data;
  add_choice(
      app, "--data", data.name, data_names(),
      "Train on fashion-mnist (default); synthetic: images that need no files; text: the sources of Python's standard "
      "library; clicks: made-up impressions")
      ->group(kTrainingGroup);
  add_parsed(app, "--data-folder", data.folder, parse_path,
             fmt::format("Read the data from FOLDER (default: {} for fashion-mnist, the newest /usr/lib/python3.* for "
                         "text, of which *.py are read)",
                         kFashionMnistFolder))
      ->type_name("FOLDER")
      ->group(kTrainingGroup);
  add_parsed(app, "--train-examples", data.train_examples, whole_number_from<std::int64_t>(1),
             "Train with the first N examples only (default: all)")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--test-examples", data.test_examples, whole_number_from<std::int64_t>(1),
             "Test with the first N examples only (default: all)")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--context", data.context, whole_number_from<std::int64_t>(1, 1 << 16),
             fmt::format("text: an example is a window of so many bytes (default {})", data.context))
      ->type_name("BYTES")
      ->group(kTrainingGroup);
  add_parsed(app, "--rows", data.rows, whole_number_from<std::int64_t>(2 * kClickFields, 1 << 24),
             fmt::format("clicks: draw from so many values, a multiple of {}; the model has a row of numbers for each "
                         "(default {})",
                         kClickFields, data.rows))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--seed", training.seed, whole_number_from<std::uint64_t>(0),
             "Draw the model's first values and the order of the examples from this seed (default 1)")
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_model_flags(CLI::App& app, ModelOptions& model) {
  add_choice(
      app, "--model", model.name, model_names(),
      fmt::format("Train this model: transformer for text, deepfm for clicks, the others for images (default {})",
                  model.name))
      ->group(kTrainingGroup);
  const auto add_size = [&](const char* flag, std::int64_t& value, const char* unit, const std::string& what) {
    add_parsed(app, flag, value, whole_number_from<std::int64_t>(1, 1 << 20),
               fmt::format("{} (default {})", what, value))
        ->type_name(unit)
        ->group(kTrainingGroup);
  };
  add_size("--hidden", model.hidden, "UNITS", "mlp: give its first layer so many units, for a larger model");
  add_size("--layers", model.transformer.layers, "N", "transformer: give it so many blocks");
  add_size("--width", model.transformer.width, "UNITS", "transformer: describe a symbol by so many numbers");
  add_size("--heads", model.transformer.heads, "N",
           "transformer: give attention so many heads, which divide the width");
}

void add_length_flags(CLI::App& app, TrainOptions& training) {
  add_parsed(app, "--epochs", training.epochs, whole_number_from(1),
             fmt::format("Go through all examples N times (default {}, unless --iterations is given)", kEpochs))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--iterations", training.max_iterations, whole_number_from<std::int64_t>(1),
      "Train for N iterations. Together with --epochs: stop after N, as if interrupted; the learning rate follows "
      "--epochs all the same")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--batch", training.batch_size, whole_number_from(1),
             fmt::format("Take N examples per worker and iteration (default {})", training.batch_size))
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

void add_warmup_flags(CLI::App& app, TrainOptions& training) {
  add_parsed(app, "--warmup", training.warmup_epochs, parse_nonnegative,
             fmt::format("Let the learning rate climb for so many epochs, or a fraction of one (default {}; with "
                         "--iterations alone {:.0f} % of them)",
                         kWarmupEpochs, 100 * kWarmupPart))
      ->type_name("EPOCHS")
      ->group(kTrainingGroup);
  add_parsed(app, "--warmup-iterations", training.warmup_iterations, whole_number_from<std::int64_t>(0),
             "The same in iterations, instead of --warmup")
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_optimizer_flags(CLI::App& app, TrainOptions& training) {
  add_choice(app, "--optimizer", training.optimizer, optimizer_names(),
             "Use this optimizer (default " + training.optimizer + ")")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--learning-rate", training.learning_rate, parse_positive,
      fmt::format("Let the learning rate climb to RATE, then fall as a cosine (default {} for sgd, {} for others)",
                  default_learning_rate("sgd"), default_learning_rate("adamw")))
      ->type_name("RATE")
      ->group(kTrainingGroup);
  add_warmup_flags(app, training);
  add_parsed(app, "--final-rate", training.final_rate, parse_nonnegative,
             "Let the learning rate fall to RATE; with --swa, at its start (default 0)")
      ->type_name("RATE")
      ->group(kTrainingGroup);
  add_parsed(app, "--swa", training.swa_start, whole_number_from<std::int64_t>(1),
             "Also test the mean of the model's parameters over all iterations from START on (default: don't)")
      ->type_name("START")
      ->group(kTrainingGroup);
  add_parsed(app, "--momentum", training.momentum, parse_nonnegative,
             fmt::format("Give sgd this momentum (default {})", training.momentum))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
  add_parsed(app, "--weight-decay", training.weight_decay, parse_nonnegative,
             fmt::format("Give the optimizer this weight decay (default {})", training.weight_decay))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
  add_parsed(
      app, "--betas", training.betas, parse_betas,
      fmt::format("Give adam or adamw these two betas (default {},{})", training.betas.first, training.betas.second))
      ->type_name("B1,B2")
      ->group(kTrainingGroup);
  add_parsed(app, "--clip-norm", training.clip_norm, parse_positive,
             "Scale gradients down where everyone's mean gradient is longer than NORM (default: don't)")
      ->type_name("NORM")
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
  add_model_flags(app, command.training.model);
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
  require_for(app, "--data-folder", is_read_from_files(training.data.name), "--data fashion-mnist or text");
  require_for(app, "--context", training.data.name == "text", "--data text");
  require_for(app, "--hidden", training.model.name == "mlp", "--model mlp");
  for (const char* flag : {"--layers", "--width", "--heads"}) {
    require_for(app, flag, training.model.name == "transformer", "--model transformer");
  }
  require_for(app, "--rows", training.data.name == "clicks", "--data clicks");
  require_for(app, "--betas", training.optimizer != "sgd", "--optimizer adam or adamw");
  require_for(app, "--momentum", training.optimizer == "sgd", "--optimizer sgd");
  const StateTreatment state = resolve(sync.state, training.optimizer != "sgd");
  require_for(app, "--state-period", state == StateTreatment::kRotating, "--optimizer-state rotating");
  require_for(app, "--checkpoint-every", is_saving, "--checkpoint");
  require_for(app, "--checkpoint-every-iterations", is_saving, "--checkpoint");
  require_for(app, "--resume", is_saving, "--checkpoint");
  check(training);
}

}  // namespace dssync::cli
