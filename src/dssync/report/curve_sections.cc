// What changes over a run: accuracy and loss, the time of iterations, disagreement; then links and network.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/report/bar_chart.h"
#include "dssync/report/line_chart.h"
#include "dssync/report/link_chart.h"
#include "dssync/report/markup.h"
#include "dssync/report/network_chart.h"
#include "dssync/report/sections.h"

namespace dssync {
namespace {

constexpr std::size_t kMostPoints = 240;      // of a line
constexpr std::size_t kMostBands = 4;         // more would hide each other
constexpr std::size_t kMostEvaluations = 40;  // of a table of evaluations

std::vector<LegendEntry> legend_of(const Comparison& comparison) {
  std::vector<LegendEntry> result;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i)
    result.push_back({comparison.groups[i].name, static_cast<int>(i)});
  return result;
}

std::string run_name(const RunGroup& group, const TrainingRun& run) {
  return group.runs.size() > 1 ? fmt::format("{}, {}", group.name, member_name(group, run)) : group.name;
}

// One series for each run, whatever `fill` puts into it.
std::vector<Series> series_of(const Comparison& comparison,
                              const std::function<void(const TrainingRun&, Series&)>& fill) {
  std::vector<Series> result;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    const RunGroup& group = comparison.groups[i];
    for (const TrainingRun* run : group.runs) {
      Series series{.name = run_name(group, *run),
                    .style = static_cast<int>(i),
                    .thin = group.runs.size() > 1,
                    .points = {},
                    .band = {}};
      fill(*run, series);
      if (!series.points.empty()) result.push_back(std::move(series));
    }
  }
  return result;
}

std::vector<Point> points_of(const TrainingRun& run, float IterationSample::*value) {
  std::vector<Point> result;
  result.reserve(run.samples.size());
  for (const IterationSample& sample : run.samples)
    result.push_back({static_cast<double>(sample.iteration), double{sample.*value}});
  return result;
}

std::vector<Series> bucket_series(const Comparison& comparison,
                                  const std::function<std::vector<Point>(const TrainingRun&)>& points) {
  std::vector<Series> result = series_of(comparison, [&](const TrainingRun& run, Series& series) {
    const std::size_t buckets = std::clamp(run.samples.size() / 4, std::size_t{30}, kMostPoints / 2);
    series.band = in_buckets(points(run), buckets);
    for (const Bucket& bucket : series.band) series.points.push_back({bucket.x, bucket.y.median});
  });
  if (result.size() > kMostBands) {
    for (Series& series : result) series.band.clear();
  }
  return result;
}

std::string level_label(double accuracy) { return fmt::format("{:.4g} %", 100 * accuracy); }

std::string accuracy_chart(const Comparison& comparison, bool by_time) {
  LineChart chart;
  chart.id = by_time ? "chart-accuracy-time" : "chart-accuracy-iterations";
  chart.title = by_time ? "Accuracy against training time" : "Accuracy against iterations";
  chart.description = "A line with a point for every evaluation of every run; the table below has the values.";
  chart.x_title = by_time ? "training time" : "iteration";
  chart.y_title = "test accuracy";
  chart.x_unit = by_time ? Unit::kSeconds : Unit::kPlain;
  chart.y_unit = Unit::kPercent;
  chart.markers = true;
  chart.level = comparison.accuracy;
  if (comparison.accuracy) chart.level_label = level_label(*comparison.accuracy);
  chart.legend = legend_of(comparison);
  chart.series = series_of(comparison, [by_time](const TrainingRun& run, Series& series) {
    // A long run may be evaluated more often than markers find room.
    const std::size_t stride = run.evaluations.size() / 120 + 1;
    for (std::size_t i = 0; i < run.evaluations.size(); ++i) {
      if (i % stride != 0 && i + 1 != run.evaluations.size()) continue;
      const Evaluation& evaluation = run.evaluations[i];
      series.points.push_back(
          {by_time ? evaluation.training_seconds : static_cast<double>(evaluation.iteration), evaluation.accuracy});
    }
  });
  return draw(chart);
}

std::string loss_chart(const Comparison& comparison) {
  LineChart chart;
  chart.id = "chart-loss";
  chart.title = "Training loss against iterations";
  chart.description = "Loss of rank 0's batches, as a moving average, one line for each run.";
  chart.x_title = "iteration";
  chart.y_title = "loss";
  chart.legend = legend_of(comparison);
  chart.series = series_of(comparison, [](const TrainingRun& run, Series& series) {
    const auto reach = static_cast<std::size_t>(std::clamp<std::int64_t>(run.total_iterations / 40, 1, 1 << 20));
    series.points = smoothed(points_of(run, &IterationSample::loss), reach, kMostPoints);
  });
  chart.note = "Of rank 0's batches; the moving average over a twentieth of the run.";
  return draw(chart);
}

bool has_areas(const Comparison& comparison) {
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) {
      for (const Evaluation& evaluation : run->evaluations) {
        if (evaluation.auc) return true;
      }
    }
  }
  return false;
}

std::string cell(const std::optional<double>& number) {
  return fmt::format("<td class=\"n\">{}</td>", number ? fmt::format("{:.4f}", *number) : "");
}

// A column for the area under the curve only where some run has one.
std::string evaluations_table(const Comparison& comparison) {
  std::string rows;
  const bool shows_areas = has_areas(comparison);
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) {
      const std::size_t stride = (run->evaluations.size() + kMostEvaluations - 1) / kMostEvaluations;
      for (std::size_t i = 0; i < run->evaluations.size(); ++i) {
        if (i % stride != 0 && i + 1 != run->evaluations.size()) continue;
        const Evaluation& evaluation = run->evaluations[i];
        rows += fmt::format(
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
            "class=\"n\">{}</td>{}{}</tr>\n",
            escaped(run_name(group, *run)), shown_count(evaluation.iteration),
            shown_seconds(evaluation.training_seconds), shown_percent(evaluation.accuracy, 2), cell(evaluation.loss),
            shows_areas ? cell(evaluation.auc) : "");
      }
    }
  }
  return "<details open class=\"aside\"><summary>The evaluations as a table</summary><table><thead><tr><th>run</th><th "
         "class=\"n\">iteration</th><th class=\"n\">training time</th><th class=\"n\">test "
         "accuracy</th><th class=\"n\">test loss</th>" +
         std::string(shows_areas ? "<th class=\"n\">AUC</th>" : "") + "</tr></thead>\n<tbody>\n" + rows +
         "</tbody></table></details>\n";
}

std::string split_chart(const Comparison& comparison) {
  BarChart chart{.id = "chart-split",
                 .title = "Where an iteration's time goes",
                 .description =
                     "Bars of the mean time of an iteration on rank 0, split in computing, synchronizing and waiting; "
                     "the table below has the values.",
                 .x_title = "mean time per iteration on rank 0",
                 .x_unit = Unit::kSeconds,
                 .part_names = {"computing", "synchronizing", "waiting"},
                 .rows = {},
                 .note = {}};
  for (const RunGroup& group : comparison.groups) {
    if (group.mean_seconds <= 0) continue;
    chart.rows.push_back(
        {group.name,
         {std::max(0.0, group.mean_compute), std::max(0.0, group.mean_sync), std::max(0.0, group.mean_wait)},
         shown_seconds(group.mean_seconds)});
  }
  return draw(chart);
}

std::string split_table(const Comparison& comparison) {
  std::string out =
      "<table><thead><tr><th>run</th><th class=\"n\">mean</th><th class=\"n\">computing</th><th "
      "class=\"n\">synchronizing</th><th class=\"n\">waiting</th><th class=\"n\">median</th><th "
      "class=\"n\">10–90\u00a0%</th><th class=\"n\">against bsp</th><th "
      "class=\"n\">predicted</th></tr></thead>\n<tbody>\n";
  for (const RunGroup& group : comparison.groups) {
    const TrainingRun* planned = group.with_network();
    const bool has_prediction = planned != nullptr && planned->network->predicted_seconds;
    out += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{} to {}</td><td class=\"n\">{}</td><td "
        "class=\"n\">{}</td></tr>\n",
        escaped(group.name), shown_seconds(group.mean_seconds), shown_seconds(group.mean_compute),
        shown_seconds(group.mean_sync), shown_seconds(group.mean_wait), shown_seconds(group.iteration_seconds.median),
        shown_seconds(group.iteration_seconds.low), shown_seconds(group.iteration_seconds.high),
        group.iteration_speedup ? shown_ratio(*group.iteration_speedup) : "–",
        has_prediction ? shown_seconds(*planned->network->predicted_seconds) : "–");
  }
  return out +
         "</tbody></table>\n<p class=\"note\">Waiting: for other workers and the network; older logs do not tell it "
         "from "
         "synchronizing. Against bsp: the fastest bsp method's median, divided by this one. "
         "Predicted: what the plan expects averaging alone to take, without computing.</p>\n";
}

// All that happens in the network happens to all runs at the same time, not in the same iteration.
std::vector<Point> pace_of(const TrainingRun& run) {
  std::vector<Point> points;
  double seconds = 0;
  for (const IterationSample& sample : run.samples) {
    if (!std::isfinite(sample.seconds)) continue;
    seconds += sample.seconds;
    points.push_back({seconds, sample.seconds});
  }
  return points;
}

double seconds_until(const TrainingRun& run, std::int64_t iteration) {
  double seconds = 0;
  for (const IterationSample& sample : run.samples) {
    if (sample.iteration <= iteration && std::isfinite(sample.seconds)) seconds += sample.seconds;
  }
  return seconds;
}

std::string pace_chart(const Comparison& comparison) {
  LineChart chart;
  chart.id = "chart-pace";
  chart.title = "Time per iteration over the run";
  chart.description = "The median time of neighbouring iterations, one line for each run.";
  chart.x_title = "training time";
  chart.x_unit = Unit::kSeconds;
  chart.y_title = "time per iteration";
  chart.y_unit = Unit::kSeconds;
  chart.y_from_zero = true;
  chart.y_may_be_logarithmic = true;
  chart.legend = legend_of(comparison);
  chart.series = bucket_series(comparison, pace_of);
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) {
      for (const Replanned& event : run->replanned)
        chart.marks.push_back({seconds_until(*run, event.iteration), "replanned"});
    }
  }
  const bool has_bands =
      std::any_of(chart.series.begin(), chart.series.end(), [](const Series& series) { return !series.band.empty(); });
  chart.note = has_bands ? "Median of neighbouring iterations; the area is their 10–90\u00a0%."
                         : "Median of neighbouring iterations.";
  return draw(chart);
}

std::string replanned_table(const Comparison& comparison) {
  std::string rows;
  for (const RunGroup& group : comparison.groups) {
    for (const TrainingRun* run : group.runs) {
      for (const Replanned& event : run->replanned) {
        rows +=
            fmt::format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                        escaped(run_name(group, *run)), shown_count(event.iteration), shown_seconds(event.seconds),
                        escaped(event.reason));
      }
    }
  }
  if (rows.empty()) return {};
  return "<h3>Plans that changed during a run</h3>\n<div class=\"scroll\"><table><thead><tr><th>run</th><th "
         "class=\"n\">iteration</th><th "
         "class=\"n\">after</th><th>reason</th></tr></thead>\n<tbody>\n" +
         rows + "</tbody></table></div>\n";
}

// Groups whose replicas were always equal, which a logarithmic axis cannot show.
std::vector<std::string> always_equal(const Comparison& comparison) {
  std::vector<std::string> result;
  for (const RunGroup& group : comparison.groups) {
    const bool is_zero = std::all_of(group.runs.begin(), group.runs.end(), [](const TrainingRun* run) {
      return std::all_of(run->samples.begin(), run->samples.end(),
                         [](const IterationSample& sample) { return !(sample.relative_disagreement > 0); });
    });
    if (is_zero) result.push_back(group.name);
  }
  return result;
}

std::string section(const char* id, const char* title, const std::string& body) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, title, body);
}

std::string missing(const std::string& what) { return fmt::format("<p class=\"missing\">{}</p>\n", what); }

std::string unknown_networks(const Comparison& comparison, bool (*knows)(const RunGroup&), const char* what) {
  std::vector<std::string> names;
  for (const RunGroup& group : comparison.groups) {
    if (!knows(group)) names.push_back(group.name);
  }
  if (names.empty()) return {};
  return missing(fmt::format("Nothing about {} in the log{} of {}.", what, names.size() == 1 ? "" : "s",
                             escaped(fmt::format("{}", fmt::join(names, "; ")))));
}

constexpr const char* kAboutDisagreement =
    "<div class=\"aside\"><p>Methods that do not average everyone in every iteration let the replicas drift apart a "
    "little. What matters is that the distance stays small against the steps of training: it follows the learning "
    "rate, "
    "and should fall with it. A curve that keeps growing means that the replicas are averaged too seldom for this "
    "learning rate.</p><p>Every evaluation begins with an exact average of all replicas.</p></div>\n";

std::string load_note(const std::string& trees) {
  if (trees.find(" load</figcaption>") == std::string::npos) return {};
  return load_legend() +
         "<p class=\"note\">The load of a cable's busier direction. Measured: bytes carried, as a share of what the "
         "link "
         "could have carried during the run. Predicted: time of the link, as a share of the planned iteration.</p>\n";
}

std::string plan_text(const RunGroup& group) {
  const Network& network = *group.with_network()->network;
  std::string out = fmt::format("<h3>{}: who averages with whom</h3>\n<p class=\"note\">A cycle of {} round{}",
                                escaped(group.name), network.rounds.size(), network.rounds.size() == 1 ? "" : "s");
  if (network.shards > 1) {
    out +=
        fmt::format("; the parameters are cut into {} shards, and in every iteration each goes through another round",
                    network.shards);
  } else {
    out += ", one after another";
  }
  if (network.steady_disagreement)
    out += fmt::format("; planned disagreement S\u00a0=\u00a0{}", shown_number(*network.steady_disagreement));
  return out + ". Same letter: these workers average together. An empty circle keeps its own step.</p>\n";
}

}  // namespace

std::string accuracy_section(const Comparison& comparison) {
  std::string charts = accuracy_chart(comparison, true) + accuracy_chart(comparison, false);
  std::string body;
  if (charts.empty()) body += missing("No run was evaluated.");
  body += "<div class=\"charts\">\n" + charts + loss_chart(comparison) +
          (charts.empty() ? "" : evaluations_table(comparison)) + "</div>\n";
  return section("accuracy", "Accuracy and loss", body);
}

std::string time_section(const Comparison& comparison) {
  const std::string charts = split_chart(comparison) + pace_chart(comparison);
  if (charts.empty()) return section("time", "Time per iteration", missing("No log has an iteration."));
  return section("time", "Time per iteration",
                 "<div class=\"charts\">\n" + charts + "</div>\n<div class=\"scroll\">" + split_table(comparison) +
                     "</div>" + replanned_table(comparison));
}

std::string disagreement_section(const Comparison& comparison) {
  LineChart chart;
  chart.id = "chart-disagreement";
  chart.title = "Distance of the replicas, as a part of the parameters' norm";
  chart.description = "The median of neighbouring iterations, one line for each run.";
  chart.x_title = "iteration";
  chart.y_title = "relative disagreement";
  chart.y_may_be_logarithmic = true;
  chart.y_from_zero = true;
  chart.legend = legend_of(comparison);
  const std::vector<std::string> equal = always_equal(comparison);
  std::erase_if(chart.legend, [&](const LegendEntry& entry) {
    return std::find(equal.begin(), equal.end(), entry.name) != equal.end();
  });
  chart.series = bucket_series(
      comparison, [](const TrainingRun& run) { return points_of(run, &IterationSample::relative_disagreement); });
  std::erase_if(chart.series, [](const Series& series) {
    return std::all_of(series.points.begin(), series.points.end(), [](const Point& point) { return point.y <= 0; });
  });
  chart.note =
      "The distance of the replicas from their average, estimated in every iteration; median of neighbouring "
      "iterations.";
  if (!equal.empty()) chart.note += fmt::format(" Always 0: {}.", escaped(fmt::format("{}", fmt::join(equal, ", "))));
  const std::string drawn = draw(chart);
  if (drawn.empty()) {
    return section("disagreement", "Disagreement",
                   missing("The replicas of all runs were equal in every iteration, or no iteration was done."));
  }
  const std::string body = "<div class=\"charts\">\n" + drawn + kAboutDisagreement + "</div>\n";
  return section("disagreement", "Disagreement", body);
}

std::string links_section(const Comparison& comparison) {
  std::string body;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i)
    body += draw_links(comparison.groups[i], fmt::format("chart-links-{}", i + 1));
  if (body.empty()) {
    body = missing(
        "The logs say nothing about links: neither what was planned (event “network”) nor what was carried (event "
        "“traffic”).");
  } else {
    body +=
        "<p class=\"note\">Means over the links of a row, and their range. Measured: what the links' interfaces "
        "counted since the first iteration, with the headers of packets and what evaluations move.</p>\n";
    body += unknown_networks(
        comparison, [](const RunGroup& group) { return !group.links.empty(); }, "links");
  }
  return section("links", "Load per link", body);
}

std::string network_section(const Comparison& comparison) {
  std::string trees;
  std::string plans;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) {
    const RunGroup& group = comparison.groups[i];
    if (group.with_network() == nullptr) continue;
    trees += draw_network(group, fmt::format("chart-network-{}", i + 1));
    const std::string rounds = draw_rounds(group, fmt::format("round-{}", i + 1));
    if (!rounds.empty()) plans += plan_text(group) + rounds;
  }
  if (trees.empty() && plans.empty()) {
    return section("network", "The network and the plan",
                   missing("The logs say nothing about the network (event “network”)."));
  }
  const std::string unknown = unknown_networks(
      comparison, [](const RunGroup& group) { return group.with_network() != nullptr; }, "the network");
  return section("network", "The network and the plan",
                 load_note(trees) + "<div class=\"charts\">\n" + trees + "</div>\n" + unknown + plans);
}

}  // namespace dssync
