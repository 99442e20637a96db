#include "dssync/training/workload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <torch/nn/functional.h>
#include <torch/nn/modules/batchnorm.h>

#include "dssync/training/data/load_data.h"
#include "dssync/training/models/models.h"

namespace dssync {
namespace {

// Enough for means and variances of a few percent; each costs a forward pass.
constexpr std::int64_t kStatisticsBatches = 20;

// While it lives, BatchNorm's running statistics are the mean over all batches.
class CumulativeStatistics {
 public:
  explicit CumulativeStatistics(Model& model) {
    for (const auto& module : model.modules()) {
      auto norm = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(module);
      if (!norm) continue;
      norms_.emplace_back(norm, norm->options.momentum());
      norm->reset_running_stats();
      norm->options.momentum(c10::nullopt);
    }
  }
  ~CumulativeStatistics() {
    for (auto& [norm, momentum] : norms_) norm->options.momentum(momentum);
  }
  CumulativeStatistics(const CumulativeStatistics&) = delete;
  CumulativeStatistics& operator=(const CumulativeStatistics&) = delete;

  bool are_none() const { return norms_.empty(); }

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::BatchNorm2dImpl>, c10::optional<double>>> norms_;
};

}  // namespace

Workload::Workload(const TrainOptions& options, int rank, int workers)
    : rank_(rank),
      workers_(workers),
      task_(task_of(shape_of(options.data))),
      data_(load_data(options.data)),
      batches_(data_.train->size(), options.batch_size, rank, workers, options.seed),
      model_(make_model(options.model, options.seed, shape_of(options.data))) {
  model_->train();
}

Batch Workload::batch(std::int64_t iteration) {
  const std::int64_t epoch = iteration / batches_.per_epoch();
  return data_.train->batch(batches_.batch(epoch, iteration % batches_.per_epoch()), epoch);
}

at::Tensor Workload::loss(std::int64_t iteration, const Model::BeforeLayer& before) {
  const Batch examples = batch(iteration);
  return task_.loss(model_->forward(examples.inputs, before), examples.targets);
}

Score Workload::test() {
  const Share share = share_of(data_.test->size(), rank_, workers_);
  return evaluate(*model_, task_, *data_.test, share.first, share.last);
}

void Workload::recompute_statistics(std::int64_t iteration) {
  const torch::NoGradGuard no_grad;
  const CumulativeStatistics statistics(*model_);
  if (statistics.are_none()) return;
  for (std::int64_t at = std::max<std::int64_t>(0, iteration - kStatisticsBatches); at < iteration; ++at) {
    model_->forward(batch(at).inputs);
  }
}

}  // namespace dssync
