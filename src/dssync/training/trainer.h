// Trains a model on this worker, together with all other workers of the world. Start here: train().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/comm/world.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/topology.h"
#include "dssync/training/dataset.h"
#include "dssync/training/models.h"
#include "dssync/training/reports.h"
#include "dssync/training/run_log.h"

namespace dssync {

// What a run is told about itself, for its log.
struct Surroundings {
  std::vector<std::string> command;                   // that started it
  std::string network;                                // where the topology is from
  bool emulated = false;                              // on a testbed
  std::function<std::vector<std::uint64_t>()> count;  // bytes that every link has carried, by LinkId; may be null
};

struct TrainOptions {
  std::string data = "fashion-mnist";  // or "synthetic"
  std::filesystem::path data_folder = kFashionMnistFolder;
  std::int64_t train_examples = 0;  // the first so many; 0: all
  std::int64_t test_examples = 0;
  std::string model = "cnn";           // one of model_names()
  std::int64_t hidden = kHiddenUnits;  // units of mlp's first layer
  std::uint64_t seed = 1;              // of the model's first values and of the order of the examples

  int epochs = 4;
  std::int64_t max_iterations = 0;      // stop when so many were done, as if interrupted: the learning rate follows the
                                        // epochs all the same, and a checkpoint goes on from there. 0: don't
  int batch_size = 32;                  // of each worker
  std::string optimizer = "sgd";        // one of optimizer_names()
  std::optional<double> learning_rate;  // the peak; without one default_learning_rate(optimizer)
  double momentum = 0.9;
  double weight_decay = 5e-4;
  double warmup_epochs = 0.5;  // in which the learning rate climbs; may be a fraction

  int evaluate_every = 1;                      // epochs; 0: only at the end
  std::int64_t evaluate_every_iterations = 0;  // also evaluate every so many; 0: don't
  Seconds compute{0};  // forward and backward take at least so long, without using the CPU: what an
                       // accelerator would take. A third of it is the forward pass
  int threads = 1;     // that torch may use for one operation

  std::filesystem::path checkpoint_folder;       // empty: no checkpoints. Otherwise also one at the end
  int checkpoint_every_epochs = 1;               // 0: don't
  std::int64_t checkpoint_every_iterations = 0;  // 0: don't
  bool resume = false;                           // go on from the last checkpoint in checkpoint_folder

  std::filesystem::path log;         // of rank 0, see RunLog; empty: none
  std::filesystem::path trace;       // of rank 0, one Chrome trace of all workers; empty: none
  std::size_t trace_spans = 20'000;  // that each worker keeps: the first ones
  Surroundings surroundings;         // of rank 0
};

// Watches a run from the training thread. Every worker has its own; what they throw ends the run.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;

  // Rank 0, where a log is written: another thread may end it, see RunLog::interrupted.
  virtual void log_opened(const std::shared_ptr<RunLog>& /*log*/) {}
  virtual void started(const StartReport& /*report*/) {}
  virtual void iteration(const IterationReport& /*report*/) {}
  virtual void evaluated(const EvaluationReport& /*report*/) {}
  virtual void replanned(const ReplanReport& /*report*/) {}
  virtual void checkpoint(const CheckpointReport& /*report*/) {}
};

// Throws InputError that names the option, without looking at any file.
void check(const TrainOptions& options);

// Collective. Returns the same accuracy on all workers. `progress` may be null.
//
// A run that goes on from a checkpoint ends with the same bits as one that was never interrupted (but for asp and ssp,
// which are never the same twice, and for runs whose plan has changed): checkpoints don't change what is trained, and
// evaluations come at the same iterations.
//
// Throws InputError for what cannot be right (options, files, a checkpoint of another run), AgreementError where the
// workers' options differ, PeerError where another worker is lost, and Error, for example where the loss is no number
// any more. Before it throws, the other workers are told and the log ends with the cause.
TrainResult train(World& world, const Topology& topology, const TrainOptions& options, const SyncOptions& sync,
                  ProgressSink* progress = nullptr);

}  // namespace dssync
