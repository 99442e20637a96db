#include "flags/sync_flags.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/base/units.h"
#include "dssync/planner/planner.h"
#include "dssync/sync/methods/method_cost.h"
#include "flags/disagreement_limit.h"
#include "flags/flags.h"

namespace dssync::cli {
namespace {

std::string names_text(const std::vector<Method>& methods, const char* between) {
  std::vector<std::string> names;
  for (const Method method : methods) names.push_back(name_of(method));
  return fmt::format("{}", fmt::join(names, between));
}

LimitFlag parse_fixed_limit(const std::string& text) { return {parse_nonnegative(text), false}; }

LimitFlag parse_limit(const std::string& text) {
  if (text == "auto") return {.is_steered = true};
  if (text.starts_with("auto:")) return {parse_nonnegative(text.substr(5)), true};
  return parse_fixed_limit(text);
}

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method method : all_methods()) names.push_back(name_of(method));
  return names;
}

void add_sync_flags(CLI::App& app, SyncFlags& flags, const std::string& group, LimitKind limit) {
  SyncOptions& options = flags.options;
  const bool may_steer = limit == LimitKind::kSteerable;
  add_parsed(app, "--disagreement", flags.limit, may_steer ? parse_limit : parse_fixed_limit,
             std::string("ds-sync: the largest S allowed (default 0.5)") +
                 (may_steer ? "; auto or auto:S allows less while steps are large" : ""))
      ->type_name("S")
      ->group(group);
  add_parsed(app, "--group-limit", options.group_limit, whole_number_from(2),
             "ds-sync: the largest group allowed (default: none)")
      ->type_name("G")
      ->group(group);
  add_choice(app, "--schedule", flags.schedule, {"auto", "published"},
             "ds-sync: auto (default) plans; published is the schedule of the DS-Sync paper")
      ->group(group);
  app.add_flag("--overlap", flags.overlap, "ds-sync, local-sgd: average while the next gradient is computed")
      ->group(group);
  app.add_flag("--in-line", flags.in_line, "ds-sync, local-sgd: average after each step (default)")->group(group);
  add_parsed(app, "--bucket", options.bucket_bytes, parse_bytes,
             "bsp-ring, bsp-hierarchical, ps: gradients are averaged in pieces of this size (default 1MiB)")
      ->type_name("SIZE")
      ->group(group);
  add_parsed(app, "--period", options.period, whole_number_from(1),
             "local-sgd: an average every so many iterations (default 8)")
      ->type_name("H")
      ->group(group);
  add_parsed(app, "--staleness", options.staleness, whole_number_from(0),
             "ssp: iterations that the fastest worker may be ahead of the slowest (default 3)")
      ->type_name("N")
      ->group(group);
}

void check_belonging(const CLI::App& app, const std::vector<Belonging>& belongings,
                     const std::vector<Method>& methods) {
  for (const auto& [flag, owners] : belongings) {
    const bool is_of_use =
        std::find_first_of(owners.begin(), owners.end(), methods.begin(), methods.end()) != owners.end();
    if (is_of_use || app.get_option(flag)->count() == 0) continue;
    throw InputError(fmt::format("{} belongs to --method {}, but the method is {}", flag, names_text(owners, " or "),
                                 names_text(methods, ", ")));
  }
}

void resolve_flags(const CLI::App& app, SyncFlags& flags, const std::vector<Method>& methods) {
  check_belonging(app,
                  {{"--disagreement", {Method::kDsSync}},
                   {"--group-limit", {Method::kDsSync}},
                   {"--schedule", {Method::kDsSync}},
                   {"--overlap", {Method::kDsSync, Method::kLocalSgd}},
                   {"--in-line", {Method::kDsSync, Method::kLocalSgd}},
                   {"--bucket", {Method::kBspRing, Method::kBspHierarchical, Method::kPs}},
                   {"--period", {Method::kLocalSgd}},
                   {"--staleness", {Method::kSsp}}},
                  methods);
  if (flags.overlap && flags.in_line) throw InputError("--overlap and --in-line exclude each other");
  if (flags.schedule == "published" && app.get_option("--disagreement")->count() > 0) {
    throw InputError("--disagreement needs --schedule auto");
  }
  if (flags.limit.is_steered && app.get_option("--group-limit")->count() > 0) {
    throw InputError(
        "--disagreement auto and --group-limit exclude each other: small groups may not reach a tight limit");
  }
  flags.options.disagreement = flags.limit.most;
  flags.options.steer = flags.limit.is_steered;
  flags.options.published = flags.schedule == "published";
  flags.options.overlap = flags.overlap;
}

void check_limit(const SyncFlags& flags, const std::vector<Method>& methods, const Topology& topology, double bytes) {
  const SyncOptions& options = flags.options;
  const bool is_planned = std::find(methods.begin(), methods.end(), Method::kDsSync) != methods.end();
  if (!is_planned || options.published || options.group_limit == 0) return;
  Planner planner(topology, bytes, options.group_limit);
  best_or_explain(planner, options.disagreement, options.group_limit);
}

Seconds predicted_iteration(const SyncFlags& flags, const std::vector<Method>& methods, const Topology& topology,
                            double bytes, Seconds compute) {
  double slowest = 0;
  for (const Method method : methods) {
    SyncOptions options = flags.options;
    options.method = method;
    // What follows a plan is no slower than an exact average, and planning takes its time.
    const bool is_planned = method == Method::kDsSync || method == Method::kLocalSgd;
    const Cost cost = method_cost(is_planned ? Method::kBspRing : method, topology, bytes, nullptr);
    slowest = std::max(slowest, iteration_seconds(options, cost, compute));
  }
  return Seconds(slowest);
}

}  // namespace dssync::cli
