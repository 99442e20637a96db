#include "train.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/training/models.h"
#include "dssync/training/optimizers.h"
#include "flags.h"

namespace dssync::cli {
namespace {

constexpr const char* kWorkersGroup = "Workers and network";
constexpr const char* kTrainingGroup = "Training";
constexpr const char* kMethodGroup = "Synchronization";
constexpr const char* kOutputGroup = "Files and output";

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method method : all_methods()) names.push_back(name_of(method));
  return names;
}

std::uint16_t parse_port(const std::string& text) {
  return static_cast<std::uint16_t>(whole_number_from(1, int{std::numeric_limits<std::uint16_t>::max()})(text));
}

// c10d counts a timeout in milliseconds.
Seconds parse_timeout(const std::string& text) {
  const Seconds value = parse_duration(text);
  if (value >= Seconds(0.1) && value <= Seconds(86'400)) return value;
  throw InputError(fmt::format("expected a time from 100ms to 1440min, but found '{}'", text));
}

std::string parse_path(const std::string& text) {
  if (!text.empty()) return text;
  throw InputError("expected a path, but found ''");
}

void add_worker_flags(CLI::App& app, TrainCommand& command) {
  add_parsed(app, "--topology", command.topology, parse_path, "The network: dssync's YAML or Slurm's topology.conf")
      ->type_name("FILE")
      ->group(kWorkersGroup);
  add_parsed(app, "--workers", command.workers, whole_number_from(1, 10'000),
             "How many, on one switch; instead of --topology. Without rank variables all of them start on this machine")
      ->type_name("N")
      ->group(kWorkersGroup);
  add_parsed(app, "--nic", command.assumptions.nic, parse_bandwidth,
             "Speed of the NICs of which the file says nothing, and of those of --workers (default 10Gbps)")
      ->type_name("RATE")
      ->group(kWorkersGroup);
  add_parsed(app, "--uplink", command.assumptions.uplink, parse_bandwidth,
             "Speed of the uplinks of which the file says nothing")
      ->type_name("RATE")
      ->group(kWorkersGroup);
  add_parsed(app, "--timeout", command.timeout, parse_timeout,
             "How long to wait for other workers: at the start, and in every average (default 60s)")
      ->type_name("TIME")
      ->group(kWorkersGroup);
  add_parsed(app, "--port", command.port, parse_port,
             "Where workers that this command starts meet (default: any free port)")
      ->type_name("PORT")
      ->group(kWorkersGroup);
}

void add_data_flags(CLI::App& app, TrainOptions& training) {
  add_choice(app, "--data", training.data, {"fashion-mnist", "synthetic"}, "fashion-mnist (default) or synthetic")
      ->group(kTrainingGroup);
  add_parsed(app, "--data-folder", training.data_folder, parse_path,
             fmt::format("Where fashion-mnist is (default {})", kFashionMnistFolder))
      ->type_name("FOLDER")
      ->group(kTrainingGroup);
  add_parsed(app, "--train-examples", training.train_examples, whole_number_from<std::int64_t>(1),
             "Train with the first so many images only")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--test-examples", training.test_examples, whole_number_from<std::int64_t>(1),
             "Test with the first so many images only")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_choice(app, "--model", training.model, model_names(), "(default " + training.model + ")")->group(kTrainingGroup);
  add_parsed(app, "--seed", training.seed, whole_number_from<std::uint64_t>(0),
             "Of the model's first values and the order of the images (default 1)")
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_length_flags(CLI::App& app, TrainOptions& training) {
  add_parsed(app, "--epochs", training.epochs, whole_number_from(1),
             fmt::format("How often every image is seen (default {})", training.epochs))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--iterations", training.max_iterations, whole_number_from<std::int64_t>(1),
             "Stop after so many, as if interrupted: the learning rate follows --epochs all the same")
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--batch", training.batch_size, whole_number_from(1),
             fmt::format("Images per worker and iteration (default {})", training.batch_size))
      ->type_name("N")
      ->group(kTrainingGroup);
  add_parsed(app, "--evaluate-every", training.evaluate_every, whole_number_from(0),
             "Epochs between two tests of the model; 0: only at the end (default 1)")
      ->type_name("EPOCHS")
      ->group(kTrainingGroup);
  add_parsed(app, "--compute", training.compute, parse_duration,
             "Forward and backward take at least so long, without using the CPU, as if on an accelerator")
      ->type_name("TIME")
      ->group(kTrainingGroup);
  add_parsed(app, "--threads", training.threads, whole_number_from(1, 1024),
             fmt::format("Of torch in each worker (default {})", training.threads))
      ->type_name("N")
      ->group(kTrainingGroup);
}

void add_optimizer_flags(CLI::App& app, TrainOptions& training) {
  add_choice(app, "--optimizer", training.optimizer, optimizer_names(), "(default " + training.optimizer + ")")
      ->group(kTrainingGroup);
  add_parsed(app, "--learning-rate", training.learning_rate, parse_positive,
             fmt::format("The highest; it falls as a cosine (default {} for sgd, {} for adamw)",
                         default_learning_rate("sgd"), default_learning_rate("adamw")))
      ->type_name("RATE")
      ->group(kTrainingGroup);
  add_parsed(app, "--warmup", training.warmup_epochs, parse_nonnegative,
             fmt::format("In which the learning rate climbs (default {})", training.warmup_epochs))
      ->type_name("EPOCHS")
      ->group(kTrainingGroup);
  add_parsed(app, "--momentum", training.momentum, parse_nonnegative,
             fmt::format("Of sgd (default {})", training.momentum))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
  add_parsed(app, "--weight-decay", training.weight_decay, parse_nonnegative,
             fmt::format("(default {})", training.weight_decay))
      ->type_name("NUMBER")
      ->group(kTrainingGroup);
}

void add_plan_flags(CLI::App& app, TrainCommand& command) {
  add_choice(app, "--method", command.method, method_names(), "(default " + command.method + ")")->group(kMethodGroup);
  add_parsed(app, "--disagreement", command.sync.disagreement, parse_nonnegative,
             "ds-sync: the largest S allowed (default 0.5)")
      ->type_name("S")
      ->group(kMethodGroup);
  add_parsed(app, "--group-limit", command.sync.group_limit, whole_number_from(2),
             "ds-sync: the largest group allowed (default: none)")
      ->type_name("G")
      ->group(kMethodGroup);
  add_choice(app, "--schedule", command.schedule, {"auto", "published"},
             "ds-sync: auto (default) plans; published is the schedule of the DS-Sync paper")
      ->group(kMethodGroup);
  add_parsed(app, "--global-warmup", command.sync.warmup_iterations, whole_number_from(0),
             "ds-sync, local-sgd: so many iterations average everyone before the schedule starts (default 0)")
      ->type_name("ITERATIONS")
      ->group(kMethodGroup);
}

void add_method_flags(CLI::App& app, TrainCommand& command) {
  app.add_flag("--overlap", command.overlap, "ds-sync, local-sgd: average while the next gradient is computed")
      ->group(kMethodGroup);
  app.add_flag("--in-line", command.in_line, "ds-sync, local-sgd: average after each step (default)")
      ->group(kMethodGroup);
  add_choice(app, "--optimizer-state", command.optimizer_state, {"local", "averaged", "rotating"},
             "ds-sync: what happens to momentum: rotating (default), averaged, or local")
      ->group(kMethodGroup);
  add_parsed(app, "--state-period", command.sync.state_period, whole_number_from(1),
             "ds-sync, rotating: parts of the state that are averaged in turn, each for a cycle (default 4)")
      ->type_name("PARTS")
      ->group(kMethodGroup);
  add_parsed(app, "--bucket", command.sync.bucket_bytes, parse_bytes,
             "bsp-ring, bsp-hierarchical, ps: gradients are averaged in pieces of this size (default 1MiB)")
      ->type_name("SIZE")
      ->group(kMethodGroup);
  add_parsed(app, "--period", command.sync.period, whole_number_from(1),
             "local-sgd: an average every so many iterations (default 8)")
      ->type_name("H")
      ->group(kMethodGroup);
  add_parsed(app, "--staleness", command.sync.staleness, whole_number_from(0),
             "ssp: iterations that the fastest worker may be ahead of the slowest (default 3)")
      ->type_name("N")
      ->group(kMethodGroup);
}

void add_file_flags(CLI::App& app, TrainCommand& command) {
  TrainOptions& training = command.training;
  add_parsed(app, "--log", training.log, parse_path, "A line of JSON for every iteration and event")
      ->type_name("FILE")
      ->group(kOutputGroup);
  add_parsed(app, "--trace", training.trace, parse_path,
             "What happened when on every worker, for Perfetto or chrome://tracing")
      ->type_name("FILE")
      ->group(kOutputGroup);
  add_parsed(app, "--checkpoint", training.checkpoint_folder, parse_path,
             "Save the training here, to go on from it with --resume")
      ->type_name("FOLDER")
      ->group(kOutputGroup);
  add_parsed(app, "--checkpoint-every", training.checkpoint_every_epochs, whole_number_from(0),
             "0: only at the end (default 1)")
      ->type_name("EPOCHS")
      ->group(kOutputGroup);
  add_parsed(app, "--checkpoint-every-iterations", training.checkpoint_every_iterations,
             whole_number_from<std::int64_t>(1), "Besides")
      ->type_name("ITERATIONS")
      ->group(kOutputGroup);
  app.add_flag("--resume", training.resume, "Go on from the last checkpoint in --checkpoint")->group(kOutputGroup);
  add_output_flags(app, command.format, command.color);
  for (const char* flag : {"--format", "--color"}) app.get_option(flag)->group(kOutputGroup);
}

bool is_given(const CLI::App& app, const std::string& flag) { return app.get_option(flag)->count() > 0; }

// Which methods a flag belongs to.
struct Belonging {
  const char* flag;
  std::vector<Method> methods;
};

void check_method_flags(const CLI::App& app, Method method) {
  const std::vector<Belonging> belongings = {
      {"--disagreement", {Method::kDsSync}},
      {"--group-limit", {Method::kDsSync}},
      {"--schedule", {Method::kDsSync}},
      {"--global-warmup", {Method::kDsSync, Method::kLocalSgd}},
      {"--overlap", {Method::kDsSync, Method::kLocalSgd}},
      {"--in-line", {Method::kDsSync, Method::kLocalSgd}},
      {"--optimizer-state", {Method::kDsSync}},
      {"--state-period", {Method::kDsSync}},
      {"--bucket", {Method::kBspRing, Method::kBspHierarchical, Method::kPs}},
      {"--period", {Method::kLocalSgd}},
      {"--staleness", {Method::kSsp}},
  };
  for (const auto& [flag, methods] : belongings) {
    if (!is_given(app, flag) || std::find(methods.begin(), methods.end(), method) != methods.end()) continue;
    std::vector<std::string> names;
    for (const Method owner : methods) names.push_back(name_of(owner));
    throw InputError(fmt::format("{} belongs to --method {}, but the method is {}", flag, fmt::join(names, " or "),
                                 name_of(method)));
  }
}

// Throws where `flag` is given though what it is for is not.
void require_for(const CLI::App& app, const std::string& flag, bool is_of_use, const std::string& needed) {
  if (is_given(app, flag) && !is_of_use) throw InputError(fmt::format("{} needs {}", flag, needed));
}

StateTreatment state_treatment(const std::string& name) {
  if (name == "local") return StateTreatment::kLocal;
  return name == "averaged" ? StateTreatment::kAveraged : StateTreatment::kRotating;
}

}  // namespace

void add_train_flags(CLI::App& app, TrainCommand& command) {
  add_worker_flags(app, command);
  add_data_flags(app, command.training);
  add_length_flags(app, command.training);
  add_optimizer_flags(app, command.training);
  add_plan_flags(app, command);
  add_method_flags(app, command);
  add_file_flags(app, command);
}

void settle(const CLI::App& app, TrainCommand& command) {
  SyncOptions& sync = command.sync;
  const TrainOptions& training = command.training;
  sync.method = method_from_name(command.method);
  check_method_flags(app, sync.method);
  if (command.overlap && command.in_line) throw InputError("--overlap and --in-line exclude each other");
  const bool is_saving = !training.checkpoint_folder.empty();
  require_for(app, "--data-folder", training.data == "fashion-mnist", "--data fashion-mnist");
  require_for(app, "--momentum", training.optimizer == "sgd", "--optimizer sgd");
  require_for(app, "--state-period", command.optimizer_state == "rotating", "--optimizer-state rotating");
  require_for(app, "--disagreement", command.schedule == "auto", "--schedule auto");
  require_for(app, "--checkpoint-every", is_saving, "--checkpoint");
  require_for(app, "--checkpoint-every-iterations", is_saving, "--checkpoint");
  require_for(app, "--resume", is_saving, "--checkpoint");
  sync.published = command.schedule == "published";
  sync.overlap = command.overlap;
  sync.state = state_treatment(command.optimizer_state);
  check(training);
}

}  // namespace dssync::cli
