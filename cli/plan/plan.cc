#include "plan/plan.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/method/cost.h"
#include "dssync/planner/cost.h"
#include "dssync/planner/planner.h"
#include "dssync/topology/levels.h"
#include "flags/disagreement_limit.h"
#include "flags/flags.h"
#include "plan/plan_report.h"
#include "terminal/output.h"
#include "text/rounds.h"

namespace dssync::cli {
namespace {

std::vector<LimitRow> compare_limits(Planner& planner, double chosen) {
  std::vector<double> limits = {0, 0.1, 0.2, 0.5, 1, 2, chosen};
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::vector<LimitRow> result;
  for (const double limit : limits) {
    LimitRow row{.limit = limit, .chosen = limit == chosen};
    if (const std::optional<Plan> plan = planner.best(limit)) {
      row.feasible = true;
      row.disagreement = plan->disagreement();
      row.seconds = plan->cost.seconds_per_iteration + plan->inside.seconds_per_iteration;
      row.rounds = plan->rounds.size();
      row.meetings_of_all = meetings_of_all(plan->rounds);
    } else {
      row.disagreement = planner.smallest_disagreement();
    }
    result.push_back(row);
  }
  return result;
}

// Of the levels of the network.
Codec shortest_of(const PlanReport& report) {
  Codec shortest = Codec::kFloat32;
  for (int level = 0; level <= report.levels; ++level) shortest = std::max(shortest, report.plan.codecs.at(level));
  return shortest;
}

PlanReport make_report(const PlanOptions& options, const ReadResult& input) {
  const PatienceNote note("dssync plan: planning ...");
  const auto bytes = static_cast<double>(options.bytes);
  const bool published = options.schedule == "published";
  const std::vector<Group> replicas = choose_replicas(input.topology, {.bytes = bytes,
                                                                       .disagreement = options.disagreement,
                                                                       .group_limit = options.group_limit,
                                                                       .published = published,
                                                                       .exact_inside = options.exact_inside,
                                                                       .codecs = options.codec});
  Planner planner(input.topology, bytes, options.group_limit, replicas, options.codec);
  PlanReport report;
  report.source = options.topology;
  report.notes = input.notes;
  report.bytes = options.bytes;
  report.disagreement_limit = options.disagreement;
  report.group_limit = options.group_limit;
  report.exact_inside = options.exact_inside;
  report.published = published;
  report.codec = options.codec;
  report.levels = top_level(input.topology);
  const auto planned = [&](Planner& with) {
    return published ? with.published() : best_or_explain(with, options.disagreement, options.group_limit);
  };
  report.plan = planned(planner);
  if (!report.plan.codecs.is_float32()) {
    Planner in_float32(input.topology, bytes, options.group_limit, replicas);
    report.float32_seconds = planned(in_float32).cost.seconds_per_iteration + report.plan.inside.seconds_per_iteration;
    for (const Method method : {Method::kBspRing, Method::kBspHierarchical}) {
      const double seconds =
          method_cost(method, input.topology, bytes, nullptr, {shortest_of(report), options.codec.bytes_per_second})
              .seconds_per_iteration;
      report.encoded_baseline = std::min(report.encoded_baseline, seconds);
    }
  }
  report.ring_seconds = ring_seconds(input.topology, bytes);
  report.hierarchical_seconds = hierarchical_seconds(input.topology, bytes);
  if (options.format == "text") report.limits = compare_limits(planner, options.disagreement);
  return report;
}

}  // namespace

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  CLI::App* verb = app.add_subcommand("plan", "Find the fastest averaging schedule for a network and explain it");
  verb->group("Verbs");
  verb->add_option("--topology", options.topology, "Read the network from FILE: dssync's YAML or Slurm's topology.conf")
      ->required()
      ->type_name("FILE");
  add_parsed(*verb, "--bytes", options.bytes, parse_bytes, "Plan for parameters of this size (default 8MB)")
      ->type_name("SIZE");
  add_parsed(*verb, "--disagreement", options.disagreement, parse_nonnegative,
             "Let replicas disagree by at most S; 0 is an exact all-reduce in every iteration (default 0.5)")
      ->type_name("S");
  add_parsed(*verb, "--group-limit", options.group_limit, whole_number_from(2),
             "Let at most G workers average with each other, at least 2 (default: no limit)")
      ->type_name("G");
  add_parsed(*verb, "--exact-inside", options.exact_inside, exact_inside_from_name,
             "Average gradients inside each host, rack or site in every iteration, and parameters between these; auto: "
             "hosts, and more where that costs no time (default none)")
      ->type_name("LEVEL");
  add_applied(
      *verb, "--codec", [&options](const std::string& text) { options.codec.codec = codec_choice_from_name(text); },
      fmt::format("Let averages travel in this codec; auto: in the bits that make an iteration fastest, level by level "
                  "(default {})",
                  name_of(options.codec)))
      ->type_name("NAME")
      ->check(CLI::IsMember(codec_choice_names()));
  add_applied(
      *verb, "--codec-rate",
      [&options](const std::string& text) { options.codec.bytes_per_second = static_cast<double>(parse_bytes(text)); },
      "Let a worker encode so much float32 in a second, or decode (default 1GB)")
      ->type_name("SIZE");
  add_choice(*verb, "--schedule", options.schedule, {"auto", "published"},
             "Search for the fastest (auto, the default), or take that of the DS-Sync paper (published)");
  add_assumption_flags(*verb, options.assumptions);
  add_output_flags(*verb, options.format, options.color);
  return verb;
}

void run_plan(const PlanOptions& options) {
  const ReadResult input = read_topology(options.topology, options.assumptions);
  for (const std::string& note : input.notes) fmt::print(stderr, "dssync plan: note: {}\n", printable(note));
  const PlanReport report = make_report(options, input);
  write_result(options.format == "json" ? plan_as_json(report, input.topology)
                                        : plan_as_text(report, input.topology, style_of_output(options.color)));
}

}  // namespace dssync::cli
