// Each line is one write() to the file; what a failed write left of it is cut off again.
#include "dssync/training/log/run_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/json/json.h"
#include "dssync/runlog/schema.h"

namespace dssync {
namespace {

Json json_of(const Fields& fields) {
  Json object = Json::object();
  for (const auto& [name, value] : fields) {
    std::visit([&object, &key = name](const auto& held) { object[key] = held; }, value);
  }
  return object;
}

Json json_of(const SwaReport& report) {
  Json object{{log_key::kIterations, report.iterations},
              {log_key::kTestAccuracy, report.test_accuracy},
              {log_key::kTestLoss, report.test_loss}};
  if (report.test_auc) object[log_key::kTestAuc] = *report.test_auc;
  return object;
}

bool is_regular(int handle) {
  struct stat status {};
  return fstat(handle, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// One event that becomes a line.
class RunLog::Line {
 public:
  explicit Line(LogEvent event) { json_[log_key::kEvent] = name_of(event); }

  template <typename Value>
  Line& with(const char* key, const Value& value) {
    json_[key] = value;
    return *this;
  }
  Line& with(const char* key, const Fields& fields) {
    json_[key] = json_of(fields);
    return *this;
  }

  // Whatever bytes an error message brought along, the line is valid UTF-8 and has no line break.
  std::string text() const { return json_.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

 private:
  Json json_;
};

RunLog::RunLog(std::filesystem::path file, Mode mode) : file_(std::move(file)) {
  // Without O_TRUNC when appending, and readable, to find out how the last line ends.
  const int flags = mode == Mode::kAppend ? O_RDWR : O_WRONLY | O_TRUNC;
  handle_ = open(file_.c_str(), flags | O_CREAT | O_CLOEXEC, 0666);
  if (handle_ < 0) {
    throw InputError(file_, 0, fmt::format("the log cannot be written ({})", std::strerror(errno)));
  }
  if (mode == Mode::kAppend && is_regular(handle_)) drop_torn_line();
  goes_on_ = size_ > 0;
}

RunLog::~RunLog() { close(handle_); }

void RunLog::drop_torn_line() {
  size_ = lseek(handle_, 0, SEEK_END);
  std::array<char, 4096> block{};
  bool found = false;
  while (size_ > 0 && !found) {
    const std::int64_t start = std::max<std::int64_t>(0, size_ - static_cast<std::int64_t>(block.size()));
    const ssize_t count = pread(handle_, block.data(), static_cast<std::size_t>(size_ - start), start);
    if (count <= 0) break;
    for (ssize_t at = count; at > 0 && !found; --at) {
      found = block[static_cast<std::size_t>(at - 1)] == '\n';
      size_ = start + (found ? at : at - 1);
    }
  }
  if (ftruncate(handle_, size_) != 0 || lseek(handle_, size_, SEEK_SET) != size_) {
    const int cause = errno;
    close(handle_);
    throw InputError(file_, 0, fmt::format("the log cannot go on ({})", std::strerror(cause)));
  }
}

void RunLog::append(const Line& line, bool last) {
  const std::string text = line.text();
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  write_whole(text);
  ended_ = last;
}

void RunLog::write_whole(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(handle_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int cause = errno;
      // The file must end with a whole line.
      if (is_regular(handle_) && ftruncate(handle_, size_) == 0) lseek(handle_, size_, SEEK_SET);
      throw Error(fmt::format("{}: the log cannot be written ({})", file_.string(), std::strerror(cause)));
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += static_cast<std::int64_t>(text.size());
}

void RunLog::started(const StartReport& report) {
  Line line(goes_on_ ? LogEvent::kResumed : LogEvent::kStarted);
  line.with(log_key::kVersion, report.version)
      .with(log_key::kMethod, report.method)
      .with(log_key::kModel, report.model)
      .with(log_key::kData, report.data)
      .with(log_key::kWorkers, report.workers)
      .with(log_key::kSeed, report.seed)
      .with(log_key::kParameters, report.parameters)
      .with(log_key::kModelBytes, report.model_bytes)
      .with(log_key::kTrainExamples, report.train_examples)
      .with(log_key::kTestExamples, report.test_examples)
      .with(log_key::kIterationsPerEpoch, report.iterations_per_epoch)
      .with(log_key::kTotalIterations, report.total_iterations)
      .with(log_key::kFirstIteration, report.first_iteration)
      .with(log_key::kOptions, report.options)
      .with(log_key::kNoise, report.noise);
  if (!report.plan.empty()) line.with(log_key::kPlan, report.plan);
  if (!report.command.empty()) line.with(log_key::kCommand, report.command);
  last_iteration_ = report.first_iteration;
  append(line, false);
}

void RunLog::network(const NetworkReport& report) {
  Line line(LogEvent::kNetwork);
  line.with(log_key::kSource, report.source)
      .with(log_key::kEmulated, report.emulated)
      .with(log_key::kNodes, json_of(*report.topology));
  if (report.plan != nullptr) {
    line.with(log_key::kPlan, json_of(*report.plan)).with(log_key::kTotalDisagreement, report.total_disagreement);
  }
  line.with(log_key::kCost, json_of(report.cost, *report.topology));
  append(line, false);
}

void RunLog::iteration(const IterationReport& report) {
  Line line(LogEvent::kIteration);
  line.with(log_key::kEpoch, report.epoch)
      .with(log_key::kIteration, report.iteration)
      .with(log_key::kLoss, report.loss)
      .with(log_key::kLearningRate, report.learning_rate)
      .with(log_key::kSeconds, report.seconds)
      .with(log_key::kIterationSeconds, report.iteration_seconds)
      .with(log_key::kComputeSeconds, report.compute_seconds)
      .with(log_key::kSyncSeconds, report.sync_seconds)
      .with(log_key::kWaitSeconds, report.wait_seconds)
      .with(log_key::kImagesPerSecond, report.images_per_second)
      .with(log_key::kBytesSent, report.bytes_sent)
      .with(log_key::kDisagreement, report.disagreement)
      .with(log_key::kNoiseRatio, report.noise_ratio)
      .with(log_key::kRelativeDisagreement, report.relative_disagreement);
  last_iteration_ = report.iteration;
  append(line, false);
}

void RunLog::evaluated(const EvaluationReport& report) {
  Line line(LogEvent::kEvaluated);
  line.with(log_key::kEpoch, report.epoch)
      .with(log_key::kIteration, report.iteration)
      .with(log_key::kSeconds, report.seconds)
      .with(log_key::kTrainingSeconds, report.training_seconds)
      .with(log_key::kTestAccuracy, report.test_accuracy)
      .with(log_key::kTestLoss, report.test_loss)
      .with(log_key::kConsolidatedDisagreement, report.consolidated_disagreement);
  if (report.test_auc) line.with(log_key::kTestAuc, *report.test_auc);
  if (report.swa) line.with(log_key::kSwa, json_of(*report.swa));
  append(line, false);
}

void RunLog::replanned(const PlanChange& change, double seconds) {
  Json links = Json::array();
  for (const PlanChange::LinkChange& link : change.links) {
    links.push_back({{log_key::kName, change.network.link(link.link).name},
                     {log_key::kFromBytesPerSecond, link.from.bytes_per_second},
                     {log_key::kOthersBytesPerSecond, link.others.bytes_per_second},
                     {log_key::kToBytesPerSecond, link.to.bytes_per_second}});
  }
  Line line(LogEvent::kReplanned);
  line.with(log_key::kIteration, change.iteration)
      .with(log_key::kSeconds, seconds)
      .with(log_key::kReason, change.explanation)
      .with(log_key::kLinks, links)
      .with(log_key::kSecondsPerIterationBefore, change.seconds_before)
      .with(log_key::kSecondsPerIterationAfter, change.seconds_after)
      .with(log_key::kPlan, json_of(change.plan));
  append(line, false);
}

void RunLog::checkpoint(const CheckpointReport& report) {
  Line line(LogEvent::kCheckpoint);
  line.with(log_key::kEpoch, report.epoch)
      .with(log_key::kIteration, report.iteration)
      .with(log_key::kSeconds, report.seconds)
      .with(log_key::kSavingSeconds, report.saving_seconds)
      .with(log_key::kBytes, report.bytes)
      .with(log_key::kFolder, report.folder);
  append(line, false);
}

void RunLog::traffic(const TrafficReport& report) {
  Json links = Json::array();
  for (std::size_t link = 0; link < report.bytes.size(); ++link) {
    links.push_back({{log_key::kName, report.topology->links()[link].name}, {log_key::kBytes, report.bytes[link]}});
  }
  Line line(LogEvent::kTraffic);
  line.with(log_key::kIteration, report.iteration)
      .with(log_key::kIterations, report.iterations)
      .with(log_key::kSeconds, report.seconds)
      .with(log_key::kLinks, links);
  append(line, false);
}

void RunLog::finished(const TrainResult& result) {
  Line line(LogEvent::kFinished);
  line.with(log_key::kMethod, result.method)
      .with(log_key::kIterations, result.iterations)
      .with(log_key::kTotalIterations, result.total_iterations)
      .with(log_key::kEpochs, result.epochs)
      .with(log_key::kSeconds, result.seconds)
      .with(log_key::kTrainingSeconds, result.training_seconds)
      .with(log_key::kTestAccuracy, result.test_accuracy)
      .with(log_key::kTestLoss, result.test_loss)
      .with(log_key::kPlanChanges, result.plan_changes);
  if (result.test_auc) line.with(log_key::kTestAuc, *result.test_auc);
  if (result.swa) line.with(log_key::kSwa, json_of(*result.swa));
  append(line, true);
}

void RunLog::append_end(LogEvent event, const std::string& cause) {
  append(Line(event).with(log_key::kCause, cause).with(log_key::kIterations, last_iteration_.load()), true);
}

void RunLog::failed(const std::string& cause) {
  append_end(LogEvent::kFailed, cause);
}

void RunLog::interrupted(const std::string& cause) {
  append_end(LogEvent::kInterrupted, cause);
}

}  // namespace dssync
