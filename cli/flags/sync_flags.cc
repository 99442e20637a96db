#include "flags/sync_flags.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/method/choose_plan.h"
#include "dssync/method/cost.h"
#include "dssync/planner/planner.h"
#include "flags/disagreement_limit.h"
#include "flags/flags.h"

namespace dssync::cli {
namespace {

std::string names_text(const std::vector<Method>& methods, const char* between) {
  std::vector<std::string> names;
  for (const Method method : methods) names.push_back(name_of(method));
  return fmt::format("{}", fmt::join(names, between));
}

// The option as this verb has it: only a training can be steered.
void set_for(SyncVerb verb, const SyncOption& option, SyncOptions& options, const std::string& text) {
  option.set(options, text);
  if (verb == SyncVerb::kTrain || !options.steer) return;
  throw InputError(fmt::format("expected a number of at least 0, such as 0.5, but found '{}'", text));
}

CLI::Option* add_flag(CLI::App& app, const SyncOption& option, const SyncOption::Flag& flag, SyncOptions& options,
                      SyncVerb verb) {
  std::string help = names_text(option.methods, ", ") + ": " + flag.help;
  if (verb == SyncVerb::kTrain && flag.name == "--disagreement") {
    help += "; auto or auto:S allows less while steps are large";
  }
  // CLI11 would take a text that can be changed for the flag's value.
  if (flag.value.empty()) return app.add_flag(flag.name, std::as_const(help));
  CLI::Option* added = add_applied(
      app, flag.name, [&option, &options, verb](const std::string& text) { set_for(verb, option, options, text); },
      help);
  if (!flag.names.empty()) added->check(CLI::IsMember(flag.names));
  return added->type_name(flag.value);
}

// Whether the flag exists for the verb, and was given.
bool is_given(const CLI::App& app, const SyncOption::Flag& flag) {
  const CLI::Option* option = flag.name.empty() ? nullptr : app.get_option_no_throw(flag.name);
  return option != nullptr && option->count() > 0;
}

void check_belonging(const CLI::App& app, const SyncOption& option, const std::vector<Method>& methods) {
  const bool is_of_use =
      std::any_of(methods.begin(), methods.end(), [&](Method method) { return option.concerns(method); });
  for (const SyncOption::Flag* flag : {&option.flag, &option.opposite}) {
    if (is_of_use || !is_given(app, *flag)) continue;
    throw InputError(fmt::format("{} belongs to --method {}, but the method is {}", flag->name,
                                 names_text(option.methods, " or "), names_text(methods, ", ")));
  }
}

// Options with a value have got it while they were parsed.
void set_switch(const CLI::App& app, const SyncOption& option, SyncOptions& options) {
  const bool on = is_given(app, option.flag);
  const bool off = is_given(app, option.opposite);
  if (on && off) {
    throw InputError(fmt::format("{} and {} exclude each other", option.flag.name, option.opposite.name));
  }
  if (off) option.set(options, "off");
  if (on && option.flag.value.empty()) option.set(options, "on");
}

}  // namespace

void add_sync_flags(CLI::App& app, SyncOptions& options, const std::string& group, SyncVerb verb) {
  for (const SyncOption& option : sync_options()) {
    for (const SyncOption::Flag* flag : {&option.flag, &option.opposite}) {
      if (flag->name.empty() || (flag->trains && verb != SyncVerb::kTrain)) continue;
      add_flag(app, option, *flag, options, verb)->group(group);
    }
  }
}

void complete_sync_options(const CLI::App& app, SyncOptions& options, const std::vector<Method>& methods) {
  for (const SyncOption& option : sync_options()) {
    check_belonging(app, option, methods);
    set_switch(app, option, options);
  }
  const auto has = [&app](const char* flag) { return app.get_option(flag)->count() > 0; };
  if (options.published && has("--disagreement")) throw InputError("--disagreement needs --schedule auto");
  if (options.steer && has("--group-limit")) {
    throw InputError(
        "--disagreement auto and --group-limit exclude each other: small groups may not reach a tight limit");
  }
}

void check_limit(const SyncOptions& options, const std::vector<Method>& methods, const Topology& topology,
                 double bytes) {
  const bool is_planned = std::find(methods.begin(), methods.end(), Method::kDsSync) != methods.end();
  if (!is_planned || options.published) return;
  if (options.overlap == Overlap::kCombine && !options.steer) {
    choose_plan(topology, bytes, options, true);
    return;
  }
  if (options.group_limit == 0) return;
  const std::vector<Group> replicas = choose_replicas(topology, {.bytes = bytes,
                                                                 .disagreement = options.disagreement,
                                                                 .group_limit = options.group_limit,
                                                                 .exact_inside = options.exact_inside,
                                                                 .codecs = options.codec_choice()});
  Planner planner(topology, bytes, options.group_limit, replicas, options.codec_choice());
  best_or_explain(planner, options.disagreement, options.group_limit);
}

Seconds predicted_iteration(const SyncOptions& options, const std::vector<Method>& methods, const Topology& topology,
                            double bytes, Seconds compute) {
  double slowest = 0;
  for (const Method method : methods) {
    SyncOptions own = options;
    own.method = method;
    // Nothing is planned for this: planning takes its time.
    slowest = std::max(
        slowest, iteration_seconds(own, method_cost(method, topology, bytes, nullptr, own.codec_choice()), compute));
  }
  return Seconds(slowest);
}

}  // namespace dssync::cli
