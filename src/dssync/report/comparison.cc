#include "dssync/report/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>

namespace dssync {
namespace {

// Options that say where a run writes, not what it does; the seed is shown by itself.
bool is_incidental(std::string_view option) {
  constexpr std::array<std::string_view, 7> kIncidental{
      "seed", "log", "trace", "checkpoint_folder", "checkpoint_every_epochs", "checkpoint_every_iterations", "resume"};
  return std::find(kIncidental.begin(), kIncidental.end(), option) != kIncidental.end();
}

// All that makes a run what it is, but for the seed.
std::vector<Setting> identity(const TrainingRun& run) {
  std::vector<Setting> result{{"method", run.method},
                              {"workers", std::to_string(run.workers)},
                              {"model", run.model},
                              {"data", run.data},
                              {"version", run.version}};
  if (run.network) {
    result.emplace_back("network", run.network->source);
    result.emplace_back("emulated", run.network->emulated ? "yes" : "no");
  }
  for (const auto& [name, value] : run.options) {
    const bool is_known =
        std::any_of(result.begin(), result.end(), [&key = name](const Setting& s) { return s.first == key; });
    if (!is_incidental(name) && !is_known) result.emplace_back(name, value);
  }
  return result;
}

std::vector<RunGroup> grouped(const std::vector<TrainingRun>& runs) {
  std::vector<RunGroup> groups;
  std::map<std::vector<Setting>, std::size_t> place;
  for (const TrainingRun& run : runs) {
    const auto [entry, is_new] = place.emplace(identity(run), groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].runs.push_back(&run);
  }
  return groups;
}

constexpr std::string_view kOverlap = "overlap";

std::string overlap_of(const TrainingRun& run) {
  const auto found = std::find_if(run.options.begin(), run.options.end(),
                                  [](const Setting& setting) { return setting.first == kOverlap; });
  return found == run.options.end() ? "" : found->second;
}

// Averages that miss a step are told of always. Logs have the name of the mode; in older ones it is true or false.
std::string method_name(const TrainingRun& run) {
  const std::string overlap = overlap_of(run);
  const bool misses_step = overlap == "combine" || overlap == "true" || overlap == "on";
  return (run.method.empty() ? "unnamed method" : run.method) + (misses_step ? ", overlapped" : "");
}

// The method, and where several groups share it, what sets them apart.
void name_groups(std::vector<RunGroup>& groups) {
  std::map<std::string, std::vector<RunGroup*>> by_method;
  for (RunGroup& group : groups) by_method[group.front().method].push_back(&group);
  for (auto& [method, alike] : by_method) {
    std::vector<const TrainingRun*> first_runs;
    for (const RunGroup* group : alike) first_runs.push_back(&group->front());
    const std::vector<Difference> apart = alike.size() > 1 ? differences(first_runs) : std::vector<Difference>();
    for (RunGroup* group : alike) {
      const std::vector<Setting> own = identity(group->front());
      group->name = method_name(group->front());
      for (const Difference& difference : apart) {
        if (difference.name == kOverlap) {
          if (overlap_of(group->front()) == "layered") group->name += ", layered";
          continue;
        }
        const auto setting =
            std::find_if(own.begin(), own.end(), [&](const Setting& s) { return s.first == difference.name; });
        const std::string value = setting == own.end() ? "not set" : setting->second.empty() ? "none" : setting->second;
        group->name += fmt::format(", {} {}", in_words(difference.name), value);
      }
    }
  }
}

// The highest half percent that each of these accuracies reaches; the small number keeps 88 % from being 87.5 %.
double half_percent_below(double accuracy) { return std::floor(accuracy * 200 + 1e-9) / 200; }

double best_accuracy(const TrainingRun& run) {
  double best = 0;
  for (const Evaluation& evaluation : run.evaluations) best = std::max(best, evaluation.accuracy);
  return best;
}

std::optional<double> reachable_accuracy(const std::vector<TrainingRun>& runs) {
  const bool any_finished =
      std::any_of(runs.begin(), runs.end(), [](const TrainingRun& run) { return run.ending == Ending::kFinished; });
  std::optional<double> lowest;
  for (const TrainingRun& run : runs) {
    if (run.evaluations.empty() || (any_finished && run.ending != Ending::kFinished)) continue;
    lowest = std::min(lowest.value_or(1), best_accuracy(run));
  }
  if (!lowest) return std::nullopt;
  return half_percent_below(*lowest);
}

void add_prediction(const TrainingRun& run, std::map<std::string, LinkLoad>& loads, std::vector<std::string>& order) {
  const double seconds = run.network->predicted_seconds.value_or(0);
  for (const auto& [name, link] : run.network->links) {
    const auto [entry, is_new] = loads.emplace(name, LinkLoad{});
    if (is_new) order.push_back(name);
    entry->second.name = name;
    entry->second.bytes_per_second = link.bytes_per_second;
    entry->second.predicted_bytes = link.bytes_per_iteration;
    if (seconds > 0) entry->second.predicted_share = link.seconds / seconds;
  }
}

// "a0 out" -> the capacity of a0's cable.
double capacity_of(const Network& network, const std::string& link) {
  const std::string node = link.substr(0, link.rfind(' '));
  for (const NetworkNode& candidate : network.nodes) {
    if (candidate.name == node) return candidate.bytes_per_second;
  }
  return 0;
}

void add_measurement(const TrainingRun& run, std::map<std::string, LinkLoad>& loads, std::vector<std::string>& order) {
  const auto iterations = static_cast<double>(run.traffic->iterations);
  for (const auto& [name, bytes] : run.traffic->bytes) {
    const auto [entry, is_new] = loads.emplace(name, LinkLoad{});
    LinkLoad& load = entry->second;
    if (is_new) order.push_back(name);
    load.name = name;
    if (load.bytes_per_second <= 0 && run.network) load.bytes_per_second = capacity_of(*run.network, name);
    if (iterations > 0) load.measured_bytes = bytes / iterations;
    const double possible = load.bytes_per_second * run.traffic->seconds;
    if (possible > 0) load.measured_share = bytes / possible;
  }
}

std::vector<LinkLoad> link_loads(const RunGroup& group) {
  std::map<std::string, LinkLoad> loads;
  std::vector<std::string> order;
  const TrainingRun* planned = group.with_network();
  if (planned != nullptr) add_prediction(*planned, loads, order);
  const auto measured = std::find_if(group.runs.begin(), group.runs.end(),
                                     [](const TrainingRun* run) { return run->traffic.has_value(); });
  if (measured != group.runs.end()) add_measurement(**measured, loads, order);
  std::vector<LinkLoad> result;
  for (const std::string& name : order) result.push_back(loads[name]);
  return result;
}

void measure(RunGroup& group, std::optional<double> accuracy) {
  std::vector<double> reached;
  std::vector<double> final;
  std::vector<double> best;
  std::vector<double> seconds;
  std::vector<double> compute;
  std::vector<double> sync;
  std::vector<double> wait;
  double sent = 0;
  for (const TrainingRun* run : group.runs) {
    if (!run->evaluations.empty()) {
      best.push_back(best_accuracy(*run));
      if (run->ending == Ending::kFinished) final.push_back(run->evaluations.back().accuracy);
      const auto time = accuracy ? seconds_to(*run, *accuracy) : std::nullopt;
      if (time) reached.push_back(*time);
    }
    for (const IterationSample& sample : run->samples) {
      seconds.push_back(sample.seconds);
      compute.push_back(sample.compute_seconds);
      sync.push_back(sample.sync_seconds);
      wait.push_back(sample.wait_seconds);
    }
    sent += run->bytes_sent;
  }
  group.seconds_to_accuracy = figure_of(reached);
  group.final_accuracy = figure_of(final);
  group.best_accuracy = figure_of(best);
  group.mean_seconds = mean_of(seconds);
  group.mean_compute = mean_of(compute);
  group.mean_wait = mean_of(wait);
  group.mean_sync = mean_of(sync) - group.mean_wait;
  group.bytes_sent = seconds.empty() ? 0 : sent / static_cast<double>(seconds.size());
  group.iteration_seconds = spread_of(std::move(seconds));
  group.links = link_loads(group);
}

void add_speedups(Comparison& comparison) {
  double fastest = 0;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    const RunGroup& group = comparison.groups[i];
    if (!is_exact(group)) continue;
    const double median = group.iteration_seconds.median;
    if (median > 0 && (fastest == 0 || median < fastest)) fastest = median;
    if (group.seconds_to_accuracy.count == 0) continue;
    const bool is_first =
        !comparison.best_exact ||
        group.seconds_to_accuracy.mean < comparison.groups[*comparison.best_exact].seconds_to_accuracy.mean;
    if (is_first) comparison.best_exact = i;
  }
  for (RunGroup& group : comparison.groups) {
    const double median = group.iteration_seconds.median;
    if (fastest > 0 && median > 0) group.iteration_speedup = fastest / median;
    const Figure& time = group.seconds_to_accuracy;
    if (!comparison.best_exact || time.count == 0 || time.mean <= 0) continue;
    group.speedup = comparison.groups[*comparison.best_exact].seconds_to_accuracy.mean / time.mean;
  }
}

}  // namespace

bool is_exact(const RunGroup& group) { return group.front().method.starts_with("bsp"); }

std::string member_name(const RunGroup& group, const TrainingRun& run) {
  const auto same = std::count_if(group.runs.begin(), group.runs.end(),
                                  [&](const TrainingRun* other) { return other->seed == run.seed; });
  return same == 1 ? fmt::format("seed {}", run.seed) : fmt::format("seed {} ({})", run.seed, run.file);
}

Figure figure_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {mean_of(values), *low, *high, values.size()};
}

const TrainingRun* RunGroup::with_network() const {
  const auto place =
      std::find_if(runs.begin(), runs.end(), [](const TrainingRun* run) { return run->network.has_value(); });
  return place == runs.end() ? nullptr : *place;
}

const LinkLoad* RunGroup::busiest() const {
  const auto place = std::max_element(links.begin(), links.end(),
                                      [](const LinkLoad& a, const LinkLoad& b) { return a.share() < b.share(); });
  return place == links.end() || place->share() <= 0 ? nullptr : &*place;
}

std::optional<double> seconds_to(const TrainingRun& run, double accuracy) {
  for (const Evaluation& evaluation : run.evaluations) {
    if (evaluation.accuracy >= accuracy - 1e-12) return evaluation.training_seconds;
  }
  return std::nullopt;
}

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::vector<Difference> differences(const std::vector<const TrainingRun*>& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;
  std::map<std::string, std::size_t> seen;
  for (const TrainingRun* run : runs) {
    for (const auto& [name, value] : identity(*run)) {
      const auto [entry, is_new] = values.try_emplace(name);
      if (is_new) order.push_back(name);
      ++seen[name];
      auto& known = entry->second;
      if (std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
    }
  }
  std::vector<Difference> result;
  for (const std::string& name : order) {
    if (values[name].size() > 1 || seen[name] < runs.size()) result.push_back({name, values[name]});
  }
  return result;
}

Comparison compare(const std::vector<TrainingRun>& runs, std::optional<double> accuracy) {
  Comparison result{.groups = grouped(runs),
                    .accuracy = accuracy ? accuracy : reachable_accuracy(runs),
                    .accuracy_was_given = accuracy.has_value(),
                    .best_exact = std::nullopt};
  for (RunGroup& group : result.groups) measure(group, result.accuracy);
  name_groups(result.groups);
  add_speedups(result);
  return result;
}

}  // namespace dssync
