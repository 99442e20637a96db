// What a run tells about itself while it goes on and when it ends: figures for the log and for whoever watches. Plain
// values. Iterations and epochs count from 1: "iteration 5" is reported after five iterations were done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dssync/planner/planner.h"
#include "dssync/topology/topology.h"

namespace dssync {

// A list of named values, in the order in which people should read them.
using FieldValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;
using Fields = std::vector<std::pair<std::string, FieldValue>>;

// Before the first iteration.
struct StartReport {
  std::string version;
  std::string method;
  std::string model;
  std::string data;
  std::string examples_word = "images";  // what its examples are called
  int workers = 1;
  std::uint64_t seed = 0;
  std::int64_t parameters = 0;  // of the model
  std::int64_t model_bytes = 0;
  std::int64_t train_examples = 0;
  std::int64_t test_examples = 0;
  std::int64_t iterations_per_epoch = 0;
  std::int64_t total_iterations = 0;  // of the whole run, which the learning rate spans
  std::int64_t first_iteration = 0;   // iterations that were done before: 0, or where a resumed run goes on
  Fields options;                     // all of them, as they were given
  Fields plan;                        // ds-sync: what it follows; otherwise empty
  std::string noise;                  // what is done about the noise of one worker's gradient (NoiseTreatment)
  std::vector<std::string> command;   // that started the run; may be empty
};

// On what it runs. Both must outlive it.
struct NetworkReport {
  const Topology* topology = nullptr;
  std::string source;             // where the topology is from
  bool emulated = false;          // on a testbed
  const Plan* plan = nullptr;     // ds-sync and local-sgd: what they follow; otherwise null
  double total_disagreement = 0;  // S of the plan and what overlap adds
  Cost cost;                      // of the communication of an iteration, as predicted
};

// What the links have carried in the iterations of this process, without evaluations.
struct TrafficReport {
  std::int64_t iteration = 0;   // the last one
  std::int64_t iterations = 0;  // of this process: not those before it was resumed
  double seconds = 0;           // that these took
  const Topology* topology = nullptr;
  std::vector<std::uint64_t> bytes;  // by LinkId
};

struct IterationReport {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;
  std::int64_t total_iterations = 0;
  double loss = 0;  // of this worker's batch
  double learning_rate = 0;
  double seconds = 0;                // since the start of the run, with those before it was resumed
  double iteration_seconds = 0;      // of this iteration
  double compute_seconds = 0;        // of it: forward, backward and the optimizer's step
  double sync_seconds = 0;           // of it: that synchronization kept this worker from going on
  double wait_seconds = 0;           // of sync_seconds: waiting for averages
  double images_per_second = 0;      // of all workers together
  std::int64_t bytes_sent = 0;       // by this worker
  double disagreement = 0;           // SyncMetrics::disagreement
  double noise_ratio = 1;            // SyncMetrics::noise_ratio
  double relative_disagreement = 0;  // the distance as a part of the parameters' norm: sqrt(disagreement) / norm
};

// Of the mean of the parameters over iterations (stochastic weight averaging), with all test examples.
struct SwaReport {
  std::int64_t iterations = 0;  // that the mean is of
  double test_accuracy = 0;
  double test_loss = 0;
  std::optional<double> test_auc;
};

// Of the consolidated model, with all test examples.
struct EvaluationReport {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;
  double seconds = 0;
  double training_seconds = 0;  // of all iterations so far, without evaluations and checkpoints
  double test_accuracy = 0;     // 0 to 1
  double test_loss = 0;
  std::optional<double> test_auc{};      // area under the curve; of clicks
  std::optional<SwaReport> swa{};        // from when the mean is taken
  double consolidated_disagreement = 0;  // (1/N) sum |x_i - mean|^2, as consolidating found it
};

struct CheckpointReport {
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;
  double seconds = 0;
  double saving_seconds = 0;
  std::int64_t bytes = 0;  // of this worker's file
  std::string folder;
};

struct TrainResult {
  std::string method;
  std::int64_t iterations = 0;        // with those before the run was resumed
  std::int64_t total_iterations = 0;  // of the whole run; more than `iterations` where max_iterations ended it
  std::int64_t epochs = 0;            // that were completed
  double seconds = 0;
  double training_seconds = 0;
  double test_accuracy = 0;
  double test_loss = 0;
  std::optional<double> test_auc{};
  std::optional<SwaReport> swa{};
  std::int64_t plan_changes = 0;  // in this process
};

}  // namespace dssync
