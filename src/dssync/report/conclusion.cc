// The words of the report's first paragraph. Each sentence stands for a case, so that nothing is claimed for runs that
// failed, never got there, or have nothing to be compared with.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/report/comparison.h"
#include "dssync/report/markup.h"

namespace dssync {
namespace {

std::string percent(double share) {
  const bool is_whole = std::abs(share * 100 - std::round(share * 100)) < 1e-9;
  const bool is_tenth = std::abs(share * 1000 - std::round(share * 1000)) < 1e-9;
  return shown_percent(share, is_whole ? 0 : is_tenth ? 1 : 2);
}

std::string times(double ratio) {
  return ratio >= 10      ? fmt::format("{:.0f} times", ratio)
         : ratio >= 1.995 ? fmt::format("{:.1f} times", ratio)
                          : fmt::format("{:.2f} times", ratio);
}

// "41 s of training", or the mean over the runs of a group.
std::string time_of(const RunGroup& group) {
  const Figure& time = group.seconds_to_accuracy;
  if (time.count == 1 && group.runs.size() == 1) return shown_seconds(time.mean);
  const std::string who = time.count == group.runs.size()
                              ? fmt::format("{} runs", time.count)
                              : fmt::format("the {} of {} runs that did", time.count, group.runs.size());
  if (shown_seconds(time.low) == shown_seconds(time.high)) {
    return fmt::format("{} (mean of {})", shown_seconds(time.mean), who);
  }
  return fmt::format("{} (mean of {}, {} to {})", shown_seconds(time.mean), who, shown_seconds(time.low),
                     shown_seconds(time.high));
}

std::vector<const RunGroup*> by_time(const Comparison& comparison) {
  std::vector<const RunGroup*> result;
  for (const RunGroup& group : comparison.groups) {
    if (group.seconds_to_accuracy.count > 0) result.push_back(&group);
  }
  std::stable_sort(result.begin(), result.end(), [](const RunGroup* a, const RunGroup* b) {
    return a->seconds_to_accuracy.mean < b->seconds_to_accuracy.mean;
  });
  return result;
}

// What the fastest is measured against: the best bsp group, or the second fastest.
const RunGroup* rival_of(const Comparison& comparison, const std::vector<const RunGroup*>& order) {
  if (order.size() < 2) return nullptr;
  const RunGroup* exact = comparison.best_exact ? &comparison.groups[*comparison.best_exact] : nullptr;
  return exact != nullptr && exact != order.front() ? exact : order[1];
}

std::string comparison_sentence(const Comparison& comparison, const RunGroup& fastest, const RunGroup& rival) {
  const double ratio = rival.seconds_to_accuracy.mean / fastest.seconds_to_accuracy.mean;
  const std::string level = percent(*comparison.accuracy);
  const bool is_best_exact = comparison.best_exact && &comparison.groups[*comparison.best_exact] == &rival;
  const auto exact = std::count_if(comparison.groups.begin(), comparison.groups.end(),
                                   [](const RunGroup& group) { return is_exact(group); });
  const std::string role =
      is_best_exact && exact > 1 ? fmt::format(", the {} of the bsp runs", exact == 2 ? "faster" : "fastest") : "";
  if (!(ratio > 1.02)) {
    return fmt::format("{} and {} reached {} accuracy at about the same time: after {} and {} of training.",
                       fastest.name, rival.name, level, time_of(fastest), time_of(rival));
  }
  return fmt::format("{} reached {} accuracy after {} of training, {} sooner than {}{} ({}).", fastest.name, level,
                     time_of(fastest), times(ratio), rival.name, role, time_of(rival));
}

std::string overlap_sentence(const RunGroup& fastest, const RunGroup& rival) {
  const bool overlap = fastest.seconds_to_accuracy.high >= rival.seconds_to_accuracy.low;
  const bool has_ranges = fastest.runs.size() > 1 || rival.runs.size() > 1;
  return overlap && has_ranges ? fmt::format(" The ranges of {} and {} overlap.", fastest.name, rival.name) : "";
}

std::string final_sentence(const std::vector<const RunGroup*>& order, const RunGroup* rival) {
  const auto ended = [](const RunGroup& group) {
    return fmt::format("{} at {}", group.name, shown_percent(group.final_accuracy.mean, 2));
  };
  const RunGroup& fastest = *order.front();
  if (fastest.final_accuracy.count == 0) return "";
  if (rival == nullptr || rival->final_accuracy.count == 0)
    return fmt::format(" {} ended {}.", fastest.name, ended(fastest).substr(fastest.name.size() + 1));
  return fmt::format(" At the end of their runs {} stood {} and {}.", fastest.name,
                     ended(fastest).substr(fastest.name.size() + 1), ended(*rival));
}

std::string best_of(const RunGroup& group) {
  return group.best_accuracy.count == 0 ? "it was never evaluated"
                                        : fmt::format("its best was {}", shown_percent(group.best_accuracy.high, 2));
}

std::string missing_sentences(const Comparison& comparison) {
  std::string result;
  for (const RunGroup& group : comparison.groups) {
    if (group.seconds_to_accuracy.count > 0) continue;
    const bool finished = std::all_of(group.runs.begin(), group.runs.end(),
                                      [](const TrainingRun* run) { return run->ending == Ending::kFinished; });
    result += fmt::format(" {} {} {} ({}).", group.name, finished ? "never reached" : "did not reach",
                          percent(*comparison.accuracy), best_of(group));
  }
  return result;
}

std::string ending_sentences(const Comparison& comparison) {
  std::string result;
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) {
      if (run->ending == Ending::kFinished) continue;
      const char* what = run->ending == Ending::kFailed        ? "failed"
                         : run->ending == Ending::kInterrupted ? "was interrupted"
                                                               : "has no end in its log";
      const std::string who =
          group.runs.size() > 1 ? fmt::format("{} with {}", group.name, member_name(group, *run)) : group.name;
      result += fmt::format(" {} {} after iteration {} of {}.", who, what, shown_count(run->iterations()),
                            shown_count(run->total_iterations));
    }
  }
  return result;
}

// By the mean, which slow times count in: a median would not show that a network was slow for a third of a run.
std::string pace_sentence(const Comparison& comparison) {
  const auto faster = [](const RunGroup& a, const RunGroup& b) {
    return a.mean_seconds > 0 && (b.mean_seconds <= 0 || a.mean_seconds < b.mean_seconds);
  };
  const auto best = std::min_element(comparison.groups.begin(), comparison.groups.end(), faster);
  if (best == comparison.groups.end() || best->mean_seconds <= 0) return "No iteration was done.";
  const std::string pace = fmt::format("{} on average, {} in the median", shown_seconds(best->mean_seconds),
                                       shown_seconds(best->iteration_seconds.median));
  if (comparison.groups.size() == 1) return fmt::format("An iteration of {} took {}.", best->name, pace);
  return fmt::format("{} had the shortest iterations: {}.", best->name, pace);
}

}  // namespace

std::string conclusion(const Comparison& comparison) {
  if (!comparison.accuracy) {
    return "No run was evaluated, so nothing can be said about accuracy. " + pace_sentence(comparison) +
           ending_sentences(comparison);
  }
  const std::vector<const RunGroup*> order = by_time(comparison);
  if (order.empty()) {
    return fmt::format("No run reached {} accuracy. ", percent(*comparison.accuracy)) + pace_sentence(comparison) +
           ending_sentences(comparison);
  }
  const RunGroup& fastest = *order.front();
  const RunGroup* rival = rival_of(comparison, order);
  std::string result;
  if (rival == nullptr) {
    result = fmt::format("{} reached {} accuracy after {} of training.", fastest.name, percent(*comparison.accuracy),
                         time_of(fastest));
    result += final_sentence(order, nullptr);
    if (comparison.groups.size() == 1) result += " There is no other method here to compare it with.";
  } else {
    result = comparison_sentence(comparison, fastest, *rival) + overlap_sentence(fastest, *rival) +
             final_sentence(order, rival);
  }
  return result + missing_sentences(comparison) + ending_sentences(comparison);
}

}  // namespace dssync
