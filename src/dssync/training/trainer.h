// Trains a model on this worker, together with all other workers of the world. Start here: train().
#pragma once

#include <memory>

#include "dssync/comm/world.h"
#include "dssync/sync/synchronizer.h"
#include "dssync/topology/topology.h"
#include "dssync/training/log/reports.h"
#include "dssync/training/log/run_log.h"
#include "dssync/training/train_options.h"

namespace dssync {

// Watches a run from the training thread. Every worker has its own; what they throw ends the run.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;

  // Rank 0, where a log is written: another thread may end it, see RunLog::interrupted.
  virtual void log_opened(const std::shared_ptr<RunLog>& /*log*/) {}
  virtual void started(const StartReport& /*report*/) {}
  virtual void iteration(const IterationReport& /*report*/) {}
  virtual void evaluated(const EvaluationReport& /*report*/) {}
  virtual void replanned(const PlanChange& /*change*/) {}
  virtual void checkpoint(const CheckpointReport& /*report*/) {}
};

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
