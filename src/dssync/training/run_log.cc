// Each line is one write() to the file; what a failed write left of it is cut off again.
#include "dssync/training/run_log.h"

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

namespace dssync {
namespace {

Json json_of(const Fields& fields) {
  Json object = Json::object();
  for (const auto& [name, value] : fields) {
    std::visit([&object, &key = name](const auto& held) { object[key] = held; }, value);
  }
  return object;
}

Json json_of_plan(const Plan& plan) {
  return {{"shards", plan.shards}, {"rounds", json_of(plan.rounds)}, {"mixing", json_of(plan.mixing)}};
}

bool is_regular(int handle) {
  struct stat status {};
  return fstat(handle, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// One event that becomes a line.
class RunLog::Line {
 public:
  explicit Line(const char* event) { json_["event"] = event; }

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
  Line line(goes_on_ ? "resumed" : "started");
  line.with("version", report.version)
      .with("method", report.method)
      .with("model", report.model)
      .with("data", report.data)
      .with("workers", report.workers)
      .with("seed", report.seed)
      .with("parameters", report.parameters)
      .with("model_bytes", report.model_bytes)
      .with("train_examples", report.train_examples)
      .with("test_examples", report.test_examples)
      .with("iterations_per_epoch", report.iterations_per_epoch)
      .with("total_iterations", report.total_iterations)
      .with("first_iteration", report.first_iteration)
      .with("options", report.options);
  if (!report.plan.empty()) line.with("plan", report.plan);
  if (!report.command.empty()) line.with("command", report.command);
  last_iteration_ = report.first_iteration;
  append(line, false);
}

void RunLog::network(const NetworkReport& report) {
  Line line("network");
  line.with("source", report.source).with("emulated", report.emulated).with("nodes", json_of(*report.topology));
  if (report.plan != nullptr) {
    line.with("plan", json_of_plan(*report.plan));
  }
  line.with("cost", json_of(report.cost, *report.topology));
  append(line, false);
}

void RunLog::iteration(const IterationReport& report) {
  Line line("iteration");
  line.with("epoch", report.epoch)
      .with("iteration", report.iteration)
      .with("loss", report.loss)
      .with("learning_rate", report.learning_rate)
      .with("seconds", report.seconds)
      .with("iteration_seconds", report.iteration_seconds)
      .with("compute_seconds", report.compute_seconds)
      .with("sync_seconds", report.sync_seconds)
      .with("wait_seconds", report.wait_seconds)
      .with("images_per_second", report.images_per_second)
      .with("bytes_sent", report.bytes_sent)
      .with("disagreement", report.disagreement)
      .with("relative_disagreement", report.relative_disagreement);
  last_iteration_ = report.iteration;
  append(line, false);
}

void RunLog::evaluated(const EvaluationReport& report) {
  Line line("evaluated");
  line.with("epoch", report.epoch)
      .with("iteration", report.iteration)
      .with("seconds", report.seconds)
      .with("training_seconds", report.training_seconds)
      .with("test_accuracy", report.test_accuracy)
      .with("test_loss", report.test_loss)
      .with("consolidated_disagreement", report.consolidated_disagreement);
  append(line, false);
}

void RunLog::replanned(const ReplanReport& report) {
  const PlanChange& change = report.change;
  Json links = Json::array();
  for (const PlanChange::LinkChange& link : change.links) {
    links.push_back({{"name", change.network.link(link.link).name},
                     {"from_bytes_per_second", link.from.bytes_per_second},
                     {"others_bytes_per_second", link.others.bytes_per_second},
                     {"to_bytes_per_second", link.to.bytes_per_second}});
  }
  Line line("replanned");
  line.with("iteration", report.iteration)
      .with("seconds", report.seconds)
      .with("reason", change.explanation)
      .with("links", links)
      .with("seconds_per_iteration_before", change.seconds_before)
      .with("seconds_per_iteration_after", change.seconds_after)
      .with("plan", json_of_plan(change.plan));
  append(line, false);
}

void RunLog::checkpoint(const CheckpointReport& report) {
  Line line("checkpoint");
  line.with("epoch", report.epoch)
      .with("iteration", report.iteration)
      .with("seconds", report.seconds)
      .with("saving_seconds", report.saving_seconds)
      .with("bytes", report.bytes)
      .with("folder", report.folder);
  append(line, false);
}

void RunLog::traffic(const TrafficReport& report) {
  Json links = Json::array();
  for (std::size_t link = 0; link < report.bytes.size(); ++link) {
    links.push_back({{"name", report.topology->links()[link].name}, {"bytes", report.bytes[link]}});
  }
  Line line("traffic");
  line.with("iteration", report.iteration)
      .with("iterations", report.iterations)
      .with("seconds", report.seconds)
      .with("links", links);
  append(line, false);
}

void RunLog::finished(const TrainResult& result) {
  Line line("finished");
  line.with("method", result.method)
      .with("iterations", result.iterations)
      .with("total_iterations", result.total_iterations)
      .with("epochs", result.epochs)
      .with("seconds", result.seconds)
      .with("training_seconds", result.training_seconds)
      .with("test_accuracy", result.test_accuracy)
      .with("test_loss", result.test_loss)
      .with("plan_changes", result.plan_changes);
  append(line, true);
}

void RunLog::failed(const std::string& cause) {
  append(Line("failed").with("cause", cause).with("iterations", last_iteration_.load()), true);
}

void RunLog::interrupted(const std::string& cause) {
  append(Line("interrupted").with("cause", cause).with("iterations", last_iteration_.load()), true);
}

}  // namespace dssync
