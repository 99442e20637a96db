// The header with the conclusion, the summary table, and at the end the settings of every run.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/report/bar_chart.h"
#include "dssync/report/line_chart.h"
#include "dssync/report/markup.h"
#include "dssync/report/sections.h"

namespace dssync {
namespace {

std::vector<const TrainingRun*> all_runs(const Comparison& comparison) {
  std::vector<const TrainingRun*> result;
  for (const RunGroup& group : comparison.groups) result.insert(result.end(), group.runs.begin(), group.runs.end());
  return result;
}

// "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  const std::vector<std::string> head(names.begin(), names.end() - 1);
  return fmt::format("{} and {}", fmt::join(head, ", "), names.back());
}

std::vector<std::string> values_of(const std::vector<const TrainingRun*>& runs, std::string TrainingRun::*member) {
  std::vector<std::string> result;
  for (const TrainingRun* run : runs) {
    const std::string& value = run->*member;
    if (!value.empty() && std::find(result.begin(), result.end(), value) == result.end()) result.push_back(value);
  }
  return result;
}

std::string level_text(const Comparison& comparison) {
  const double percent = 100 * *comparison.accuracy;
  return fmt::format("{:.4g}\u00a0%", percent);
}

std::string subtitle(const std::vector<const TrainingRun*>& runs) {
  std::set<int> workers;
  for (const TrainingRun* run : runs) workers.insert(run->workers);
  const auto models = values_of(runs, &TrainingRun::model);
  const auto data = values_of(runs, &TrainingRun::data);
  std::string result = listed(values_of(runs, &TrainingRun::method).empty() ? std::vector<std::string>{"training"}
                                                                            : values_of(runs, &TrainingRun::method));
  if (!models.empty()) result += fmt::format(": {}", listed(models));
  if (!data.empty()) result += fmt::format(" on {}", listed(data));
  return result + fmt::format(", {} workers", fmt::join(workers, " and "));
}

std::string dates(const std::vector<const TrainingRun*>& runs) {
  std::vector<std::string> days = values_of(runs, &TrainingRun::date);
  if (days.empty()) return "unknown";
  std::sort(days.begin(), days.end());
  return days.size() == 1 ? days.front() : fmt::format("{} to {}", days.front(), days.back());
}

// What differs beside the method and what belongs to one method alone: the reader should know it before comparing.
std::string difference_list(const std::vector<const TrainingRun*>& runs) {
  std::string result;
  for (const Difference& difference : differences(runs)) {
    const bool is_method_matter = difference.values.size() < 2 || difference.name == "method";
    if (is_method_matter) continue;
    std::vector<std::string> values;
    for (const std::string& value : difference.values) values.push_back(value.empty() ? "none" : value);
    result += fmt::format("<li>{}: {}</li>", escaped(in_words(difference.name)), escaped(listed(values)));
  }
  return result;
}

std::string facts(const std::vector<const TrainingRun*>& runs) {
  const TrainingRun& first = *runs.front();
  std::string out = "<dl class=\"facts\">";
  const auto fact = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
  };
  const auto option = [&first](std::string_view name) {
    for (const auto& [key, value] : first.options) {
      if (key == name) return escaped(value);
    }
    return std::string();
  };
  std::set<std::string> varied;
  for (const Difference& difference : differences(runs)) varied.insert(difference.name);
  const auto shared = [&](const std::string& name) { return varied.count(name) > 0 ? std::string() : option(name); };
  if (first.parameters > 0 && varied.count("model") == 0) {
    fact("parameters",
         fmt::format("{} ({})", shown_count(first.parameters), shown_bytes(static_cast<double>(first.model_bytes))));
  }
  fact("epochs", shared("epochs"));
  fact("images per worker and iteration", shared("batch_size"));
  fact("optimizer", shared("optimizer"));
  fact("learning rate", shared("learning_rate"));
  if (first.network && varied.count("network") == 0) {
    fact("network", escaped(first.network->source) + (first.network->emulated ? ", emulated" : ""));
  }
  fact("logs written", escaped(dates(runs)));
  fact("dssync", escaped(fmt::format("{}", fmt::join(values_of(runs, &TrainingRun::version), ", "))));
  return out + "</dl>\n";
}

std::string figure_text(const Figure& figure, std::string (*shown)(double)) {
  if (figure.count == 0) return "–";
  if (figure.count == 1) return shown(figure.mean);
  return fmt::format("{}<small>{} to {}</small>", shown(figure.mean), shown(figure.low), shown(figure.high));
}

std::string two_digits(double share) { return shown_percent(share, 2); }

std::string ending_text(const TrainingRun& run) {
  switch (run.ending) {
    case Ending::kFinished:
      return "finished";
    case Ending::kFailed:
      return "<span class=\"bad\">failed</span>";
    case Ending::kInterrupted:
      return "<span class=\"bad\">interrupted</span>";
    default:
      return "<span class=\"bad\">cut off</span>";
  }
}

std::string group_ending(const RunGroup& group) {
  if (group.runs.size() == 1) return ending_text(group.front());
  const auto finished = std::count_if(group.runs.begin(), group.runs.end(),
                                      [](const TrainingRun* run) { return run->ending == Ending::kFinished; });
  const auto all = static_cast<std::ptrdiff_t>(group.runs.size());
  if (finished == all) return fmt::format("all {} finished", all);
  return fmt::format("<span class=\"bad\">{} of {} finished</span>", finished, all);
}

std::string reached_text(const RunGroup& group) {
  const Figure& time = group.seconds_to_accuracy;
  if (time.count == 0) return group.best_accuracy.count == 0 ? "–" : "not reached";
  std::string text = figure_text(time, shown_seconds);
  if (time.count < group.runs.size())
    text += fmt::format("<small>{} of {} runs</small>", time.count, group.runs.size());
  return text;
}

std::string link_text(const RunGroup& group) {
  const LinkLoad* link = group.busiest();
  if (link == nullptr) return "<span class=\"quiet\">not in the log</span>";
  const bool measured = link->measured_bytes.has_value();
  return fmt::format("{}<small>{}{}, {}</small>",
                     shown_bytes(measured ? *link->measured_bytes : link->predicted_bytes.value_or(0)),
                     escaped(link->name), measured ? "" : ", predicted", shown_percent(link->share(), 0));
}

std::string seeds_text(const RunGroup& group) {
  if (group.runs.size() == 1) return std::to_string(group.front().seed);
  std::vector<std::uint64_t> seeds;
  for (const TrainingRun* run : group.runs) seeds.push_back(run->seed);
  return fmt::format("{}", fmt::join(seeds, ", "));
}

std::string spread_text(const Spread& spread) {
  if (spread.median <= 0) return "–";
  return fmt::format("{}<small>{} to {}</small>", shown_seconds(spread.median), shown_seconds(spread.low),
                     shown_seconds(spread.high));
}

// A name that is not broken unless it has to be.
std::string named(const std::string& name, int style) {
  return fmt::format("<span class=\"{}\">{}{}</span>", name.size() <= 28 ? "name-short" : "name-long",
                     swatch(style, true), escaped(name));
}

std::string summary_row(const RunGroup& group, std::size_t style) {
  std::string out = fmt::format("<tr><th scope=\"row\">{}</th>", named(group.name, static_cast<int>(style)));
  out += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td>", group.front().workers, seeds_text(group));
  out += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td>", reached_text(group),
                     group.speedup ? shown_ratio(*group.speedup) : "–");
  out += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td>", figure_text(group.final_accuracy, two_digits),
                     spread_text(group.iteration_seconds));
  out += fmt::format("<td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n", link_text(group),
                     group.bytes_sent > 0 ? shown_bytes(group.bytes_sent) : "–", group_ending(group));
  return out;
}

// The runs of a group one by one.
std::string member_rows(const RunGroup& group, std::optional<double> accuracy) {
  if (group.runs.size() == 1) return {};
  std::string out;
  for (const TrainingRun* run : group.runs) {
    std::vector<double> seconds;
    for (const IterationSample& sample : run->samples) seconds.push_back(sample.seconds);
    const auto time = accuracy ? seconds_to(*run, *accuracy) : std::nullopt;
    const bool has_final = run->ending == Ending::kFinished && !run->evaluations.empty();
    out += fmt::format(
        "<tr class=\"member\"><th scope=\"row\">{}</th><td></td><td></td><td class=\"n\">{}</td><td></td><td "
        "class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td></td><td></td><td>{}</td></tr>\n",
        escaped(member_name(group, *run)), time ? shown_seconds(*time) : "not reached",
        has_final ? two_digits(run->evaluations.back().accuracy) : "–", shown_seconds(quantile(seconds, 0.5)),
        ending_text(*run));
  }
  return out;
}

std::string time_chart(const Comparison& comparison) {
  BarChart chart{.id = "chart-time-to-accuracy",
                 .title = fmt::format("Training time to {}", level_text(comparison)),
                 .description = "The same values as in the table above.",
                 .x_title = "training time",
                 .x_unit = Unit::kSeconds,
                 .part_names = {},
                 .rows = {},
                 .note = {}};
  for (const RunGroup& group : comparison.groups) {
    const Figure& time = group.seconds_to_accuracy;
    const int style = static_cast<int>(&group - comparison.groups.data());
    chart.rows.push_back({group.name, {time.mean}, time.count > 0 ? shown_seconds(time.mean) : "not reached", style});
  }
  return draw(chart);
}

std::string accuracy_note(const Comparison& comparison) {
  const std::string why =
      comparison.accuracy_was_given
          ? "what was asked for"
          : "the highest half percent that every run which finished reached (--accuracy chooses another)";
  std::string note = fmt::format(
      "Accuracy is of the averaged model on all test images. {} is {}. Time is that of the iterations, without "
      "evaluations and checkpoints, up to the first evaluation that found it; how often a run is evaluated limits how "
      "exactly that is known. ",
      level_text(comparison), why);
  if (comparison.best_exact) {
    note += fmt::format("The speed-up is against {}, the first of the bsp runs to get there. ",
                        escaped(comparison.groups[*comparison.best_exact].name));
  } else {
    const bool has_exact = std::any_of(comparison.groups.begin(), comparison.groups.end(), is_exact);
    note +=
        fmt::format("No bsp run {}, so there is no speed-up to state. ", has_exact ? "got there" : "is among these");
  }
  return note;
}

// As a shell would take it.
std::string shell_word(const std::string& word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string settings_table(const std::vector<Setting>& settings, const char* title) {
  if (settings.empty()) return {};
  std::string out = fmt::format("<details open><summary>{}</summary><dl class=\"settings\">", title);
  for (const auto& [name, value] : settings)
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", escaped(name),
                       value.empty() ? "<span class=\"quiet\">none</span>" : escaped(value));
  return out + "</dl></details>\n";
}

std::string run_notes(const TrainingRun& run) {
  std::string out;
  const auto note = [&out](const std::string& text) { out += "<p class=\"warning\">" + text + "</p>\n"; };
  const std::string at =
      fmt::format("after iteration {} of {}", shown_count(run.iterations()), shown_count(run.total_iterations));
  if (run.ending == Ending::kFailed) note(fmt::format("Failed {}: {}", at, escaped(run.cause)));
  if (run.ending == Ending::kInterrupted) note(fmt::format("Interrupted {}: {}", at, escaped(run.cause)));
  if (run.ending == Ending::kCutOff)
    note(fmt::format("The log ends {}, without saying how the run ended: it was killed, or it is still going on.", at));
  if (run.torn) note("The last line of the log is incomplete and was left out.");
  if (run.first_iteration > 0)
    note(fmt::format("The log begins after iteration {}: the run was resumed with a new log.",
                     shown_count(run.first_iteration)));
  for (const std::int64_t done : run.resumed_after)
    note(fmt::format(
        "Resumed after iteration {}; what had been done beyond it was done again, and the later lines count.",
        shown_count(done)));
  if (!run.other_events.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, count] : run.other_events) names.push_back(fmt::format("{} ({})", name, count));
    out += fmt::format("<p class=\"note\">Events that this version does not show: {}.</p>\n",
                       escaped(fmt::format("{}", fmt::join(names, ", "))));
  }
  return out;
}

std::string run_text(const RunGroup& group, const TrainingRun& run) {
  const std::string seed = group.runs.size() > 1 ? ", " + escaped(member_name(group, run)) : "";
  std::string out = fmt::format(
      "<article class=\"run\"><h3>{}{}</h3>\n<p class=\"note\">{} · {} · dssync {} · seed {} · {} of {} "
      "iterations{}</p>\n",
      escaped(group.name), seed, escaped(run.file), ending_text(run), escaped(run.version), run.seed,
      shown_count(run.iterations()), shown_count(run.total_iterations),
      run.date.empty() ? "" : " · log of " + escaped(run.date));
  out += run_notes(run);
  if (run.command.empty()) {
    out += "<p class=\"note\">The log does not have the command; its options are below.</p>\n";
  } else {
    std::vector<std::string> words;
    for (const std::string& word : run.command) words.push_back("<span>" + escaped(shell_word(word)) + "</span>");
    out += fmt::format("<pre>{}</pre>\n", fmt::join(words, " "));
  }
  return out + settings_table(run.options, "All options") + settings_table(run.plan, "The plan in words") +
         "</article>\n";
}

}  // namespace

std::string header_section(const Comparison& comparison) {
  const std::vector<const TrainingRun*> runs = all_runs(comparison);
  std::string out =
      fmt::format("<header>\n<p class=\"kicker\">dssync training report</p>\n<h1>{}</h1>\n", escaped(subtitle(runs)));
  out += fmt::format("<p class=\"conclusion\">{}</p>\n", escaped(conclusion(comparison)));
  if (comparison.groups.size() > 1 && std::all_of(comparison.groups.begin(), comparison.groups.end(),
                                                  [](const RunGroup& group) { return group.runs.size() == 1; })) {
    out +=
        "<p class=\"note\">One run of each: differences of a few percent may be chance. Runs with other seeds, given "
        "as further logs, show how much.</p>\n";
  }
  out += facts(runs);
  const std::string apart = difference_list(runs);
  if (!apart.empty())
    out += fmt::format("<p class=\"warning\">The runs differ in more than the method:</p><ul class=\"apart\">{}</ul>\n",
                       apart);
  return out + "</header>\n";
}

std::string summary_section(const Comparison& comparison) {
  const std::string time =
      comparison.accuracy ? fmt::format("time to {}", level_text(comparison)) : std::string("time to accuracy");
  std::string out = fmt::format(
      "<section id=\"summary\"><h2>Summary</h2>\n<div class=\"scroll\"><table "
      "class=\"summary\"><thead><tr><th>run</th><th class=\"n\">workers</th><th class=\"n\">seed</th><th "
      "class=\"n\">{}</th><th class=\"n\">speed‑up</th><th class=\"n\">final accuracy</th><th class=\"n\">per "
      "iteration<small>median, 10–90\u00a0%</small></th><th class=\"n\">busiest "
      "link<small>bytes per iteration</small></th><th class=\"n\">rank 0 sent<small>bytes per "
      "iteration</small></th><th>end</th></tr></thead>\n<tbody>\n",
      time);
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    out += summary_row(comparison.groups[i], i) + member_rows(comparison.groups[i], comparison.accuracy);
  }
  out += "</tbody></table></div>\n";
  if (!comparison.accuracy) return out + "<p class=\"note\">No run was evaluated.</p></section>\n";
  out += "<p class=\"note\">" + accuracy_note(comparison) + "Several seeds: the mean, and the range below it.</p>\n";
  return out + time_chart(comparison) + "</section>\n";
}

std::string runs_section(const Comparison& comparison) {
  std::string out = "<section id=\"runs\"><h2>The runs</h2>\n";
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) out += run_text(group, *run);
  }
  return out + "</section>\n";
}

}  // namespace dssync
