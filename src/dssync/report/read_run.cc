// Values of an unexpected kind count as missing, but for those without which a line has no meaning.
#include "dssync/report/read_run.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/report/iteration_line.h"
#include "dssync/runlog/schema.h"

namespace dssync {
namespace {

using Json = nlohmann::ordered_json;

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto place = object.find(key);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

// nlohmann-json writes what is not finite (a loss that exploded) as null.
double number(const Json& object, const char* key, double missing = 0) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_number()) return missing;
  const double result = sound(value->get<double>());
  return std::isnan(result) ? missing : result;
}

std::optional<double> optional_number(const Json& object, const char* key) {
  const double value = number(object, key, std::numeric_limits<double>::quiet_NaN());
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

float sample(const Json& object, const char* key) {
  return sound_sample(number(object, key, std::numeric_limits<double>::quiet_NaN()));
}

std::int64_t whole(const Json& object, const char* key) { return sound_whole(number(object, key)); }

std::string text(const Json& object, const char* key) {
  const Json* value = find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_deeper_than(const Json& value, int levels) {
  if (!value.is_structured()) return false;
  if (levels == 0) return true;
  return std::any_of(value.begin(), value.end(),
                     [levels](const Json& part) { return is_deeper_than(part, levels - 1); });
}

std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (is_deeper_than(value, 8)) return "...";  // writing it out would recurse
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<Setting> settings(const Json& object, const char* key) {
  std::vector<Setting> result;
  if (const Json* fields = find(object, key); fields != nullptr && fields->is_object()) {
    for (const auto& [name, value] : fields->items()) result.emplace_back(name, shown(value));
  }
  return result;
}

std::vector<int> ranks_of(const Json& list) {
  std::vector<int> result;
  if (!list.is_array()) return result;
  for (const Json& rank : list) {
    if (rank.is_number_integer() && rank >= 0 && rank <= 1'000'000) result.push_back(rank.get<int>());
  }
  return result;
}

const Json& list_of(const Json& object, const char* key) {
  static const Json kEmpty = Json::array();
  const Json* value = find(object, key);
  return value != nullptr && value->is_array() ? *value : kEmpty;
}

// A tree whose parents stand before their children; empty where the list is something else.
std::vector<NetworkNode> nodes_of(const Json& list) {
  std::vector<NetworkNode> result;
  std::unordered_map<std::string, int> place;
  for (const Json& entry : list) {
    NetworkNode node{.name = text(entry, log_key::kName),
                     .is_host = text(entry, log_key::kKind) == "host",
                     .parent = -1,
                     .bytes_per_second = std::max(0.0, number(entry, log_key::kBytesPerSecond)),
                     .ranks = ranks_of(list_of(entry, log_key::kRanks))};
    const auto parent = place.find(text(entry, log_key::kParent));
    if (parent != place.end()) node.parent = parent->second;
    const bool is_root = result.empty();
    const bool fits = is_root ? node.parent < 0 : node.parent >= 0 && !result[std::size_t(node.parent)].is_host;
    if (!fits || !place.emplace(node.name, static_cast<int>(result.size())).second) return {};
    result.push_back(std::move(node));
  }
  return result;
}

Network network_of(const Json& line) {
  Network result;
  result.source = text(line, log_key::kSource);
  result.nodes = nodes_of(list_of(line, log_key::kNodes));
  const Json* emulated = find(line, log_key::kEmulated);
  result.emulated = emulated != nullptr && emulated->is_boolean() && emulated->get<bool>();
  if (const Json* plan = find(line, log_key::kPlan)) {
    result.shards = static_cast<int>(std::clamp<std::int64_t>(whole(*plan, log_key::kShards), 1, 1'000'000));
    const Json& replicas = list_of(*plan, log_key::kReplicas);  // a group that is one has nothing to average
    for (const Json& entry : list_of(*plan, log_key::kRounds)) {
      PlannedRound round{.label = text(entry, log_key::kLabel), .groups = {}};
      for (const Json& group : list_of(entry, log_key::kGroups)) {
        const bool is_replica = std::find(replicas.begin(), replicas.end(), group) != replicas.end();
        for (const int rank : is_replica ? ranks_of(group) : std::vector<int>()) round.groups.push_back({rank});
        if (!is_replica) round.groups.push_back(ranks_of(group));
      }
      result.rounds.push_back(std::move(round));
    }
    if (const Json* mixing = find(*plan, log_key::kMixing)) {
      const Json* steady = find(*mixing, log_key::kSteadyDisagreement);
      const Json* total = find(line, log_key::kTotalDisagreement);
      const Json* planned = total != nullptr ? total : steady;
      if (planned != nullptr && planned->is_number()) result.steady_disagreement = planned->get<double>();
    }
  }
  if (const Json* cost = find(line, log_key::kCost)) {
    if (find(*cost, log_key::kSecondsPerIteration) != nullptr) {
      result.predicted_seconds = number(*cost, log_key::kSecondsPerIteration);
      *result.predicted_seconds += number(*cost, log_key::kPipelineSeconds);
    }
    result.bottleneck = text(*cost, log_key::kBottleneck);
    for (const Json& link : list_of(*cost, log_key::kLinks)) {
      result.links.emplace_back(text(link, log_key::kName),
                                PlannedLink{number(link, log_key::kBytesPerIteration), number(link, log_key::kSeconds),
                                            number(link, log_key::kCapacityBytesPerSecond)});
    }
  }
  return result;
}

// Takes one event after another into the run.
class Reader {
 public:
  explicit Reader(const std::string& name) { run_.file = name; }

  void take(const Json& line, int line_number) {
    if (!line.is_object()) throw InputError(run_.file, line_number, "expected a JSON object with an \"event\"");
    const std::string name = text(line, log_key::kEvent);
    if (name.empty())
      throw InputError(run_.file, line_number, "expected a line with an \"event\", as dssync train logs it");
    const std::optional<LogEvent> event = log_event_from(name);
    if (!has_start_ && event != LogEvent::kStarted && event != LogEvent::kResumed) {
      throw InputError(
          run_.file, line_number,
          fmt::format("expected the event \"started\" first, as dssync train logs it, but found {}", quote(name)));
    }
    if (event) {
      take(*event, line);
    } else {
      ++run_.other_events[name];
    }
  }

  // REQUIRES: has_start().
  void take(const IterationLine& line) {
    run_.samples.push_back(line.sample);
    run_.bytes_sent += line.bytes_sent;
  }

  bool has_start() const { return has_start_; }

  TrainingRun finish(bool torn) {
    run_.torn = torn;
    return std::move(run_);
  }

 private:
  void iteration(const Json& line) {
    take({.sample = {.iteration = whole(line, log_key::kIteration),
                     .loss = sample(line, log_key::kLoss),
                     .seconds = sample(line, log_key::kIterationSeconds),
                     .compute_seconds = sample(line, log_key::kComputeSeconds),
                     .sync_seconds = sample(line, log_key::kSyncSeconds),
                     .wait_seconds = sample(line, log_key::kWaitSeconds),
                     .relative_disagreement = sample(line, log_key::kRelativeDisagreement)},
          .bytes_sent = std::max(0.0, number(line, log_key::kBytesSent))});
  }

  void evaluated(const Json& line) {
    run_.evaluations.push_back({.iteration = whole(line, log_key::kIteration),
                                .training_seconds = number(line, log_key::kTrainingSeconds),
                                .accuracy = number(line, log_key::kTestAccuracy),
                                .loss = optional_number(line, log_key::kTestLoss),
                                .auc = optional_number(line, log_key::kTestAuc)});
  }

  void take(LogEvent event, const Json& line) {
    switch (event) {
      case LogEvent::kStarted:
      case LogEvent::kResumed:
        return start(line);
      case LogEvent::kNetwork:
        run_.network = network_of(line);
        return;
      case LogEvent::kIteration:
        return iteration(line);
      case LogEvent::kEvaluated:
        return evaluated(line);
      case LogEvent::kReplanned:
        return replanned(line);
      case LogEvent::kCheckpoint:
        return;
      case LogEvent::kTraffic:
        return traffic(line);
      case LogEvent::kFinished:
        run_.ending = Ending::kFinished;
        return;
      case LogEvent::kFailed:
        return end(Ending::kFailed, line);
      case LogEvent::kInterrupted:
        return end(Ending::kInterrupted, line);
    }
  }

  void replanned(const Json& line) {
    run_.replanned.push_back(
        {whole(line, log_key::kIteration), number(line, log_key::kSeconds), text(line, log_key::kReason)});
  }

  void end(Ending ending, const Json& line) {
    run_.ending = ending;
    run_.cause = text(line, log_key::kCause);
  }

  void start(const Json& line) {
    if (has_start_) {
      resume(whole(line, log_key::kFirstIteration));
    } else {
      run_.first_iteration = whole(line, log_key::kFirstIteration);
    }
    has_start_ = true;
    run_.version = text(line, log_key::kVersion);
    run_.method = text(line, log_key::kMethod);
    run_.model = text(line, log_key::kModel);
    run_.data = text(line, log_key::kData);
    run_.workers = static_cast<int>(std::clamp<std::int64_t>(whole(line, log_key::kWorkers), 1, 1'000'000));
    run_.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, log_key::kSeed)));
    run_.parameters = whole(line, log_key::kParameters);
    run_.model_bytes = whole(line, log_key::kModelBytes);
    run_.total_iterations = whole(line, log_key::kTotalIterations);
    run_.options = settings(line, log_key::kOptions);
    run_.plan = settings(line, log_key::kPlan);
    run_.command.clear();
    for (const Json& word : list_of(line, log_key::kCommand)) run_.command.push_back(shown(word));
  }

  // What came after the checkpoint was done again: the later lines count.
  void resume(std::int64_t done) {
    run_.resumed_after.push_back(done);
    run_.ending = Ending::kCutOff;
    run_.cause.clear();
    run_.traffic.reset();
    const auto later = [done](const auto& entry) { return entry.iteration > done; };
    std::erase_if(run_.samples, later);
    std::erase_if(run_.evaluations, later);
    std::erase_if(run_.replanned, later);
  }

  void traffic(const Json& line) {
    Traffic found{.iterations = whole(line, log_key::kIterations),
                  .seconds = number(line, log_key::kSeconds),
                  .bytes = {}};
    for (const Json& link : list_of(line, log_key::kLinks)) {
      found.bytes[text(link, log_key::kName)] = number(link, log_key::kBytes);
    }
    run_.traffic = std::move(found);
  }

  TrainingRun run_;
  bool has_start_ = false;
};

std::string date_of(const std::filesystem::path& file) {
  struct stat status {};
  std::tm parts{};
  if (stat(file.c_str(), &status) != 0 || gmtime_r(&status.st_mtime, &parts) == nullptr) return {};
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace

TrainingRun read_run(std::istream& input, const std::string& name) {
  Reader reader(name);
  std::string line;
  bool torn = false;
  for (int line_number = 1; std::getline(input, line); ++line_number) {
    const bool is_last = input.eof();  // it ended without a line end
    if (trimmed(line).empty()) continue;
    if (const auto iteration = read_iteration_line(line); iteration && reader.has_start()) {
      reader.take(*iteration);
      continue;
    }
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() && is_last && reader.has_start()) {
      torn = true;
      break;
    }
    if (json.is_discarded()) {
      throw InputError(name, line_number, fmt::format("expected a JSON object, but found {}", quote(trimmed(line))));
    }
    reader.take(json, line_number);
  }
  if (input.bad()) throw InputError(name, 0, "the log cannot be read");
  if (!reader.has_start()) throw InputError(name, 0, "is empty; expected a log of dssync train");
  return reader.finish(torn);
}

TrainingRun read_run(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file)) throw InputError(file, 0, "is a folder; expected a log of dssync train");
  std::ifstream input(file, std::ios::binary);
  if (!input) throw InputError(file, 0, fmt::format("the log cannot be opened ({})", std::strerror(errno)));
  TrainingRun run = read_run(input, file.string());
  run.date = date_of(file);
  return run;
}

}  // namespace dssync
