// The log of a training run, one JSON object per line, as its writer (training/log) and its reader (report) know it:
// the events and the keys. docs/command-line.md says what each means. Plain values.
#pragma once

#include <optional>
#include <string_view>

namespace dssync {

enum class LogEvent {
  kStarted,
  kResumed,
  kNetwork,
  kIteration,
  kEvaluated,
  kReplanned,
  kCheckpoint,
  kTraffic,
  kFinished,
  kFailed,
  kInterrupted,
};

// As it stands in the log: "started".
const char* name_of(LogEvent event);
// Nothing where the text names none.
std::optional<LogEvent> log_event_from(std::string_view text);

namespace log_key {

// Of every line.
inline constexpr const char* kEvent = "event";

// Of the start.
inline constexpr const char* kVersion = "version";
inline constexpr const char* kMethod = "method";
inline constexpr const char* kModel = "model";
inline constexpr const char* kData = "data";
inline constexpr const char* kWorkers = "workers";
inline constexpr const char* kSeed = "seed";
inline constexpr const char* kParameters = "parameters";
inline constexpr const char* kModelBytes = "model_bytes";
inline constexpr const char* kTrainExamples = "train_examples";
inline constexpr const char* kTestExamples = "test_examples";
inline constexpr const char* kIterationsPerEpoch = "iterations_per_epoch";
inline constexpr const char* kTotalIterations = "total_iterations";
inline constexpr const char* kFirstIteration = "first_iteration";
inline constexpr const char* kOptions = "options";
inline constexpr const char* kNoise = "noise";
inline constexpr const char* kCommand = "command";

// Of an iteration, of a test, of a checkpoint.
inline constexpr const char* kEpoch = "epoch";
inline constexpr const char* kIteration = "iteration";
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kLearningRate = "learning_rate";
inline constexpr const char* kSeconds = "seconds";
inline constexpr const char* kIterationSeconds = "iteration_seconds";
inline constexpr const char* kComputeSeconds = "compute_seconds";
inline constexpr const char* kSyncSeconds = "sync_seconds";
inline constexpr const char* kWaitSeconds = "wait_seconds";
inline constexpr const char* kImagesPerSecond = "images_per_second";
inline constexpr const char* kBytesSent = "bytes_sent";
inline constexpr const char* kDisagreement = "disagreement";
inline constexpr const char* kNoiseRatio = "noise_ratio";
inline constexpr const char* kRelativeDisagreement = "relative_disagreement";
inline constexpr const char* kTrainingSeconds = "training_seconds";
inline constexpr const char* kTestAccuracy = "test_accuracy";
inline constexpr const char* kTestLoss = "test_loss";
inline constexpr const char* kTestAuc = "test_auc";
inline constexpr const char* kSwa = "swa";
inline constexpr const char* kConsolidatedDisagreement = "consolidated_disagreement";
inline constexpr const char* kSavingSeconds = "saving_seconds";
inline constexpr const char* kFolder = "folder";

// Of a new plan, of traffic, of the end.
inline constexpr const char* kReason = "reason";
inline constexpr const char* kSecondsPerIterationBefore = "seconds_per_iteration_before";
inline constexpr const char* kSecondsPerIterationAfter = "seconds_per_iteration_after";
inline constexpr const char* kFromBytesPerSecond = "from_bytes_per_second";
inline constexpr const char* kOthersBytesPerSecond = "others_bytes_per_second";
inline constexpr const char* kToBytesPerSecond = "to_bytes_per_second";
inline constexpr const char* kIterations = "iterations";
inline constexpr const char* kEpochs = "epochs";
inline constexpr const char* kPlanChanges = "plan_changes";
inline constexpr const char* kCause = "cause";

// Of a network.
inline constexpr const char* kSource = "source";
inline constexpr const char* kEmulated = "emulated";
inline constexpr const char* kNodes = "nodes";
inline constexpr const char* kName = "name";
inline constexpr const char* kKind = "kind";
inline constexpr const char* kParent = "parent";
inline constexpr const char* kBytesPerSecond = "bytes_per_second";
inline constexpr const char* kLatencySeconds = "latency_seconds";
inline constexpr const char* kRanks = "ranks";

// Of a plan and what it costs.
inline constexpr const char* kPlan = "plan";
inline constexpr const char* kShards = "shards";
inline constexpr const char* kRounds = "rounds";
inline constexpr const char* kLabel = "label";
inline constexpr const char* kGroups = "groups";
inline constexpr const char* kReplicas = "replicas";
inline constexpr const char* kCodecs = "codecs";
inline constexpr const char* kCodecDisagreement = "codec_disagreement";
inline constexpr const char* kMixing = "mixing";
inline constexpr const char* kCycleNorm = "cycle_norm";
inline constexpr const char* kSteadyDisagreement = "steady_disagreement";
inline constexpr const char* kTotalDisagreement = "total_disagreement";
inline constexpr const char* kExact = "exact";
inline constexpr const char* kCost = "cost";
inline constexpr const char* kSecondsPerIteration = "seconds_per_iteration";
inline constexpr const char* kPipelineSeconds = "pipeline_seconds";
inline constexpr const char* kCodingSeconds = "coding_seconds";
inline constexpr const char* kBottleneck = "bottleneck";
inline constexpr const char* kLinks = "links";
inline constexpr const char* kBytes = "bytes";
inline constexpr const char* kBytesPerIteration = "bytes_per_iteration";
inline constexpr const char* kCapacityBytesPerSecond = "capacity_bytes_per_second";
}  // namespace log_key
}  // namespace dssync
