// What one worker trains: its part of the examples, the model, and how well the model does. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "dssync/training/data/sharded_batches.h"
#include "dssync/training/evaluation.h"
#include "dssync/training/task.h"
#include "dssync/training/train_options.h"

namespace dssync {

class Workload {
 public:
  // Loads the examples and makes the model, in training mode. Throws InputError as load_data and make_model do, and
  // where there are too few examples.
  Workload(const TrainOptions& options, int rank, int workers);

  Model& model() { return *model_; }
  const Task& task() const { return task_; }
  std::int64_t iterations_per_epoch() const { return batches_.per_epoch(); }
  std::int64_t train_examples() const { return data_.train->size(); }
  std::int64_t test_examples() const { return data_.test->size(); }

  // The loss of this worker's batch of an iteration, counted from 0: the forward pass. `before` is called before each
  // layer.
  at::Tensor loss(std::int64_t iteration, const Model::BeforeLayer& before);

  // How well the model does on this worker's part of the test examples.
  Score test();

  // For parameters that did not come from training, such as a mean: the running statistics of BatchNorm become those of
  // this worker's last batches before that iteration. Does nothing for models without.
  void recompute_statistics(std::int64_t iteration);

 private:
  Batch batch(std::int64_t iteration);

  int rank_;
  int workers_;
  const Task& task_;
  Datasets data_;
  ShardedBatches batches_;
  std::shared_ptr<Model> model_;
};

}  // namespace dssync
