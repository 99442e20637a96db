// Values of an unexpected kind count as missing, but for those without which a line has no meaning.
#include "dssync/report/read_run.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>
#include <string_view>
#include <sys/stat.h>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/report/iteration_line.h"

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
    NetworkNode node{.name = text(entry, "name"),
                     .is_host = text(entry, "kind") == "host",
                     .parent = -1,
                     .bytes_per_second = std::max(0.0, number(entry, "bytes_per_second")),
                     .ranks = ranks_of(list_of(entry, "ranks"))};
    const auto parent = place.find(text(entry, "parent"));
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
  result.source = text(line, "source");
  result.nodes = nodes_of(list_of(line, "nodes"));
  const Json* emulated = find(line, "emulated");
  result.emulated = emulated != nullptr && emulated->is_boolean() && emulated->get<bool>();
  if (const Json* plan = find(line, "plan")) {
    result.shards = static_cast<int>(std::clamp<std::int64_t>(whole(*plan, "shards"), 1, 1'000'000));
    for (const Json& entry : list_of(*plan, "rounds")) {
      PlannedRound round{.label = text(entry, "label"), .groups = {}};
      for (const Json& group : list_of(entry, "groups")) round.groups.push_back(ranks_of(group));
      result.rounds.push_back(std::move(round));
    }
    if (const Json* mixing = find(*plan, "mixing")) {
      const Json* steady = find(*mixing, "steady_disagreement");
      if (steady != nullptr && steady->is_number()) result.steady_disagreement = steady->get<double>();
    }
  }
  if (const Json* cost = find(line, "cost")) {
    if (find(*cost, "seconds_per_iteration") != nullptr) {
      result.predicted_seconds = number(*cost, "seconds_per_iteration");
      if (find(*cost, "pipeline_seconds") != nullptr) *result.predicted_seconds += number(*cost, "pipeline_seconds");
    }
    result.bottleneck = text(*cost, "bottleneck");
    for (const Json& link : list_of(*cost, "links")) {
      result.links.emplace_back(text(link, "name"),
                                PlannedLink{number(link, "bytes_per_iteration"), number(link, "seconds"),
                                            number(link, "capacity_bytes_per_second")});
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
    const std::string event = text(line, "event");
    if (event.empty())
      throw InputError(run_.file, line_number, "expected a line with an \"event\", as dssync train logs it");
    if (!has_start_ && event != "started" && event != "resumed") {
      throw InputError(
          run_.file, line_number,
          fmt::format("expected the event \"started\" first, as dssync train logs it, but found {}", quote(event)));
    }
    if (event == "iteration") {
      iteration(line);
    } else if (event == "evaluated") {
      evaluated(line);
    } else {
      seldom(event, line);
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
    take({.sample = {.iteration = whole(line, "iteration"),
                     .loss = sample(line, "loss"),
                     .seconds = sample(line, "iteration_seconds"),
                     .compute_seconds = sample(line, "compute_seconds"),
                     .sync_seconds = sample(line, "sync_seconds"),
                     .wait_seconds = sample(line, "wait_seconds"),
                     .relative_disagreement = sample(line, "relative_disagreement")},
          .bytes_sent = std::max(0.0, number(line, "bytes_sent"))});
  }

  void evaluated(const Json& line) {
    run_.evaluations.push_back({.iteration = whole(line, "iteration"),
                                .training_seconds = number(line, "training_seconds"),
                                .accuracy = number(line, "test_accuracy")});
  }

  void seldom(const std::string& event, const Json& line) {
    if (event == "started" || event == "resumed") {
      start(line);
    } else if (event == "network") {
      run_.network = network_of(line);
    } else if (event == "traffic") {
      traffic(line);
    } else if (event == "replanned") {
      run_.replanned.push_back({whole(line, "iteration"), number(line, "seconds"), text(line, "reason")});
    } else if (event == "finished") {
      run_.ending = Ending::kFinished;
    } else if (event == "failed" || event == "interrupted") {
      run_.ending = event == "failed" ? Ending::kFailed : Ending::kInterrupted;
      run_.cause = text(line, "cause");
    } else if (event != "checkpoint") {
      ++run_.other_events[event];
    }
  }

  void start(const Json& line) {
    if (has_start_) {
      resume(whole(line, "first_iteration"));
    } else {
      run_.first_iteration = whole(line, "first_iteration");
    }
    has_start_ = true;
    run_.version = text(line, "version");
    run_.method = text(line, "method");
    run_.model = text(line, "model");
    run_.data = text(line, "data");
    run_.workers = static_cast<int>(std::clamp<std::int64_t>(whole(line, "workers"), 1, 1'000'000));
    run_.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, whole(line, "seed")));
    run_.parameters = whole(line, "parameters");
    run_.model_bytes = whole(line, "model_bytes");
    run_.total_iterations = whole(line, "total_iterations");
    run_.options = settings(line, "options");
    run_.plan = settings(line, "plan");
    run_.command.clear();
    for (const Json& word : list_of(line, "command")) run_.command.push_back(shown(word));
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
    Traffic found{.iterations = whole(line, "iterations"), .seconds = number(line, "seconds"), .bytes = {}};
    for (const Json& link : list_of(line, "links")) found.bytes[text(link, "name")] = number(link, "bytes");
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
