// What a run is to do. Plain values; pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/training/data/load_data.h"
#include "dssync/training/learning_rate.h"
#include "dssync/training/models/models.h"
#include "dssync/training/optimizers.h"

namespace dssync {

// What a run is told about itself, for its log.
struct Surroundings {
  std::vector<std::string> command;                   // that started it
  std::string network;                                // where the topology is from
  bool emulated = false;                              // on a testbed
  std::function<std::vector<std::uint64_t>()> count;  // bytes that every link has carried, by LinkId; may be null
};

inline constexpr int kEpochs = 4;
inline constexpr double kWarmupEpochs = 0.5;
inline constexpr double kWarmupPart = 0.1;

struct TrainOptions {
  DataOptions data;
  ModelOptions model;
  std::uint64_t seed = 1;  // of the model's first values and of the order of the examples

  std::optional<int> epochs;        // how long the run is; without it, it has max_iterations, or else kEpochs
  std::int64_t max_iterations = 0;  // with epochs: stop when so many were done, as if interrupted; the learning rate
                                    // follows the epochs all the same, and a checkpoint goes on from there. 0: none
  int batch_size = 32;              // of each worker
  std::string optimizer = "sgd";    // one of optimizer_names()
  std::optional<double> learning_rate;  // the peak; without one default_learning_rate(optimizer)
  double momentum = 0.9;                // of sgd
  Betas betas;                          // of adam and adamw
  double weight_decay = 5e-4;
  double clip_norm = 0;                 // the longest that everyone's mean gradient may be; 0: any length
  std::optional<double> warmup_epochs;  // in which the learning rate climbs; may be a fraction. Without it
                                        // kWarmupEpochs, or kWarmupPart of a run whose length is given in iterations
  std::optional<std::int64_t> warmup_iterations;  // the same in iterations; only one of the two

  double final_rate = 0;       // to which the learning rate falls
  std::int64_t swa_start = 0;  // take the mean of the parameters from this iteration on; 0: don't. With a final rate,
                               // the learning rate has fallen when it starts, and stays
  int evaluate_every = 1;      // epochs; 0: only at the end
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

// Throws InputError that names the option, without looking at any file.
void check(const TrainOptions& options);

// Whether only max_iterations says how long the run is.
bool is_counted_in_iterations(const TrainOptions& options);

double peak_learning_rate(const TrainOptions& options);

// Of a run with so many iterations in an epoch. It says how long the run is, too.
LearningRate learning_rate_of(const TrainOptions& options, std::int64_t iterations_per_epoch);

}  // namespace dssync
