#include "dssync/method/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/units.h"

namespace dssync {
namespace {

constexpr std::array<std::pair<StateTreatment, const char*>, 5> kTreatments = {{
    {StateTreatment::kAuto, "auto"},
    {StateTreatment::kInferred, "inferred"},
    {StateTreatment::kLocal, "local"},
    {StateTreatment::kAveraged, "averaged"},
    {StateTreatment::kRotating, "rotating"},
}};

std::string treatment_names() {
  std::string names;
  for (const auto& [treatment, name] : kTreatments) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double nonnegative(const std::string& text) {
  const std::optional<double> value = number_in<double>(text);
  if (value && std::isfinite(*value) && *value >= 0) return *value;
  throw InputError(fmt::format("expected a number of at least 0, such as 0.5, but found '{}'", text));
}

int whole_number(const std::string& text, int least) {
  const std::optional<int> value = number_in<int>(text);
  if (value && *value >= least) return *value;
  throw InputError(fmt::format("expected a whole number of at least {}, but found '{}'", least, text));
}

bool switched_on(const std::string& text) {
  if (text != "on" && text != "off") throw InputError(fmt::format("expected on or off, but found '{}'", text));
  return text == "on";
}

void set_limit(SyncOptions& options, const std::string& text) {
  options.steer = text == "auto" || text.starts_with("auto:");
  if (text == "auto") return;
  options.disagreement = nonnegative(options.steer ? text.substr(5) : text);
}

// The smallest group has two members; 0 stands for no limit where programs, not people, give it.
void set_group_limit(SyncOptions& options, const std::string& text) {
  options.group_limit = text == "0" ? 0 : whole_number(text, 2);
}

void set_schedule(SyncOptions& options, const std::string& text) {
  options.published = text == "published" || (text != "auto" && switched_on(text));
}

const std::vector<Method> kPlanned = {Method::kDsSync};
const std::vector<Method> kScheduled = {Method::kDsSync, Method::kLocalSgd};
const std::vector<Method> kExact = {Method::kBspRing, Method::kBspHierarchical, Method::kPs};
const std::vector<Method> kEncoding = {Method::kDsSync, Method::kLocalSgd, Method::kBspRing, Method::kBspHierarchical,
                                       Method::kPs};

// A whole number of `least` or more.
template <int SyncOptions::*kMember>
SyncOption whole_number_option(const char* name, std::vector<Method> methods, int least, SyncOption::Flag flag) {
  return {
      .name = name,
      .methods = std::move(methods),
      .get = [](const SyncOptions& options) { return std::int64_t{options.*kMember}; },
      .set = [least](SyncOptions& options, const std::string& text) { options.*kMember = whole_number(text, least); },
      .flag = std::move(flag)};
}

// Whether ds-sync plans, and for what.
std::vector<SyncOption> planning_options() {
  return {
      {.name = "disagreement_limit",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return options.disagreement; },
       .set = set_limit,
       .plans = true,
       .flag = {"--disagreement", "S", "the largest S allowed (default 0.5)"}},
      {.name = "group_limit",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return std::int64_t{options.group_limit}; },
       .set = set_group_limit,
       .plans = true,
       .flag = {"--group-limit", "G", "the largest group allowed (default: none)"}},
      {.name = "published",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return options.published; },
       .set = set_schedule,
       .plans = true,
       .flag = {"--schedule",
                "NAME",
                "auto (default) plans; published is the schedule of the DS-Sync paper",
                {"auto", "published"}}},
      {.name = "exact_inside",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return name_of(options.exact_inside); },
       .set = [](SyncOptions& options,
                 const std::string& text) { options.exact_inside = exact_inside_from_name(text); },
       .plans = true,
       .flag =
           {"--exact-inside", "LEVEL",
            "average gradients in every iteration inside each host, rack or site, and parameters between these; auto: "
            "hosts, and more where that costs no time (default none)"}},
      {.name = "adapt",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return options.adapt; },
       .set = [](SyncOptions& options, const std::string& text) { options.adapt = switched_on(text); },
       .plans = true,
       .flag = {"--adapt", "", "watch the links, and plan again when they become slower or faster (default)", {}, true},
       .opposite = {"--no-adapt", "", "keep the plan", {}, true}},
      {.name = "steer",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return options.steer; },
       .set = [](SyncOptions& options, const std::string& text) { options.steer = switched_on(text); },
       .plans = true},
  };
}

// How averages are carried out.
std::vector<SyncOption> averaging_options() {
  return {
      {.name = "codec",
       .methods = kEncoding,
       .get = [](const SyncOptions& options) { return name_of(options.codec_choice()); },
       .set = [](SyncOptions& options,
                 const std::string& text) { options.codec = CodecChoice{codec_choice_from_name(text)}; },
       .plans = true,
       .flag = {"--codec", "NAME",
                fmt::format(
                    "how values travel; auto: in the bits that make an iteration fastest within the limit on S, "
                    "level by level (default: {} for ds-sync and local-sgd, float32 for others)",
                    name_of(CodecChoice{info_of(Method::kDsSync).codec})),
                codec_choice_names()}},
      {.name = "codec_rate",
       .methods = kEncoding,
       .get = [](const SyncOptions& options) { return options.codec_rate; },
       .set = [](SyncOptions& options,
                 const std::string& text) { options.codec_rate = static_cast<double>(parse_bytes(text)); },
       .plans = true,
       .flag = {"--codec-rate", "SIZE", "float32 that a worker encodes in a second, or decodes (default 1GB)"}},
      whole_number_option<&SyncOptions::period>("period", {Method::kLocalSgd}, 1,
                                                {"--period", "H", "an average every so many iterations (default 8)"}),
      {.name = "overlap",
       .methods = kScheduled,
       .get = [](const SyncOptions& options) { return name_of(options.overlap); },
       .set = [](SyncOptions& options, const std::string& text) { options.overlap = overlap_from_name(text); },
       .flag = {"--overlap",
                "MODE",
                "when to average: layered, while computing goes on with what is averaged already; combine, the values "
                "before the step; none; auto (default)",
                {"auto", "layered", "combine", "none"}},
       .opposite = {"--in-line", "", "as --overlap none: average after each step"}},
      {.name = "state",
       .methods = kPlanned,
       .get = [](const SyncOptions& options) { return name_of(options.state); },
       .set = [](SyncOptions& options, const std::string& text) { options.state = state_treatment_from_name(text); },
       .flag =
           {"--optimizer-state",
            "NAME",
            "what happens to momentum: inferred from how averages move parameters (of Adam), rotating, averaged, or "
            "local; auto (default): inferred for adam and adamw, otherwise rotating",
            {"auto", "inferred", "local", "averaged", "rotating"},
            true}},
      whole_number_option<&SyncOptions::state_period>(
          "state_period", kPlanned, 1,
          {"--state-period",
           "PARTS",
           "with rotating: parts of the state that are averaged in turn, each for a cycle (default 8)",
           {},
           true}),
      {.name = "noise_correction",
       .methods = kScheduled,
       .get = [](const SyncOptions& options) { return options.noise_correction; },
       .set = [](SyncOptions& options, const std::string& text) { options.noise_correction = switched_on(text); },
       .flag =
           {"--noise-correction", "", "let Adam divide by the noise of everyone's mean gradient (default)", {}, true},
       .opposite = {"--no-noise-correction", "", "let Adam divide by the noise of one worker's gradient", {}, true}},
      whole_number_option<&SyncOptions::warmup_iterations>(
          "sync_warmup_iterations", kScheduled, 0,
          {"--global-warmup",
           "ITERATIONS",
           "so many iterations average everyone before the schedule starts (default 0)",
           {},
           true}),
      {.name = "bucket_bytes",
       .methods = kExact,
       .get = [](const SyncOptions& options) { return options.bucket_bytes; },
       .set = [](SyncOptions& options, const std::string& text) { options.bucket_bytes = parse_bytes(text); },
       .flag = {"--bucket", "SIZE", "gradients are averaged in pieces of this size (default 1MiB)"}},
      whole_number_option<&SyncOptions::staleness>(
          "staleness", {Method::kSsp}, 0,
          {"--staleness", "N", "iterations that the fastest worker may be ahead of the slowest (default 3)"}),
  };
}

void require(bool holds, const std::string& what) {
  if (!holds) throw InputError(what);
}

}  // namespace

std::string name_of(StateTreatment treatment) {
  for (const auto& [known, name] : kTreatments) {
    if (known == treatment) return name;
  }
  return "";
}

StateTreatment state_treatment_from_name(const std::string& name) {
  for (const auto& [treatment, known] : kTreatments) {
    if (name == known) return treatment;
  }
  throw InputError(fmt::format("expected one of {}, but found '{}'", treatment_names(), name));
}

StateTreatment resolve(StateTreatment asked, bool is_adam) {
  if (asked == StateTreatment::kAuto) return is_adam ? StateTreatment::kInferred : StateTreatment::kRotating;
  if (asked == StateTreatment::kInferred && !is_adam) {
    throw InputError(
        "state: only the momentum of Adam and AdamW can be inferred; expected auto, rotating, averaged or local");
  }
  return asked;
}

CodecChoice SyncOptions::codec_choice() const {
  const MethodInfo& info = info_of(method);
  CodecChoice choice = codec.value_or(CodecChoice{info.codec});
  if (choice.is_auto() && !info.follows_plan()) choice.codec = Codec::kFloat32;
  choice.bytes_per_second = codec_rate;
  return choice;
}

std::string text_of(const OptionValue& value) {
  struct Writer {
    std::string operator()(bool held) const { return held ? "on" : "off"; }
    std::string operator()(std::int64_t held) const { return std::to_string(held); }
    std::string operator()(double held) const { return fmt::format("{}", held); }
    std::string operator()(const std::string& held) const { return held; }
  };
  return std::visit(Writer(), value);
}

bool SyncOption::concerns(Method method) const {
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

const std::vector<SyncOption>& sync_options() {
  static const std::vector<SyncOption> options = [] {
    std::vector<SyncOption> result = planning_options();
    for (SyncOption& option : averaging_options()) result.push_back(std::move(option));
    return result;
  }();
  return options;
}

void set_option(SyncOptions& options, const std::string& name, const std::string& text) {
  const std::vector<SyncOption>& known = sync_options();
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const SyncOption& option) { return option.name == name; });
  require(found != known.end(), fmt::format("there is no option '{}'", name));
  try {
    found->set(options, text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

std::vector<std::pair<std::string, OptionValue>> values_of(const SyncOptions& options) {
  std::vector<std::pair<std::string, OptionValue>> values;
  for (const SyncOption& option : sync_options()) {
    const bool is_of_use = option.concerns(options.method) && !(option.plans && options.plan);
    if (is_of_use) values.emplace_back(option.name, option.get(options));
  }
  return values;
}

void check(const SyncOptions& options) {
  const auto at_least = [](const char* what, std::int64_t value, std::int64_t least) {
    require(value >= least, fmt::format("{}: expected at least {}, but found {}", what, least, value));
  };
  at_least("state period", options.state_period, 1);
  at_least("period", options.period, 1);
  at_least("staleness", options.staleness, 0);
  at_least("warm-up iterations", options.warmup_iterations, 0);
  at_least("bytes of a bucket", options.bucket_bytes, 1);
  require(options.codec_rate > 0, "codec rate: expected more than 0 bytes in a second");
  const bool is_asynchronous = info_of(options.method).kind == MethodInfo::Kind::kAsynchronous;
  require(!is_asynchronous || options.codec_choice().codec == Codec::kFloat32,
          fmt::format("codec: {} sends changes of parameters as float32; expected float32, but found {}",
                      name_of(options.method), name_of(options.codec_choice())));
  const bool plans = options.method == Method::kDsSync && !options.plan && !options.published;
  require(!options.adapt || plans, "adapt: only plans that ds-sync makes itself can be replaced by others");
  require(!options.steer || options.adapt, "steer: expected adapt as well");
}

}  // namespace dssync
