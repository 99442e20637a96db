// `dssync plan` for people: the answer first, then the network, who meets whom, what it loads, what it gains, what S
// means, and what another limit would bring.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "plan/plan_report.h"
#include "text/links.h"
#include "text/network.h"
#include "text/numbers.h"
#include "text/rounds.h"

namespace dssync::cli {
namespace {

constexpr std::size_t kMethodBarColumns = 32;

struct Baseline {
  std::string name;
  double seconds;
};

// The faster one first.
std::pair<Baseline, Baseline> baselines_of(const PlanReport& report) {
  Baseline ring{"bsp-ring", report.ring_seconds};
  Baseline hierarchical{"bsp-hierarchical", report.hierarchical_seconds};
  return ring.seconds < hierarchical.seconds ? std::pair(ring, hierarchical) : std::pair(hierarchical, ring);
}

std::string title(const std::string& text, const Style& style) {
  const std::size_t rest = kPageWidth - std::min(kPageWidth, width(text) + 1);
  std::string rule;
  for (std::size_t i = 0; i < rest; ++i) rule += style.glyphs().rule;
  return "\n" + style.paint(text, Tint::kBold) + " " + style.paint(rule, Tint::kDim) + "\n\n";
}

std::string cycle_text(const PlanReport& report) {
  return fmt::format("cycle of {}, {}", counted(report.plan.rounds.size(), "round"),
                     counted(static_cast<std::size_t>(report.plan.shards), "shard"));
}

std::string limit_text(const PlanReport& report) {
  const std::string s = format_disagreement(report.plan.disagreement());
  const std::string verdict = report.within_limit() ? "within" : "ABOVE";
  return fmt::format("S = {}, {} the limit of {}", s, verdict, report.disagreement_limit);
}

// Whether any link is used.
bool has_traffic(const PlanReport& report) {
  return report.plan.cost.bottleneck != kNone || report.plan.inside.bottleneck != kNone;
}

std::string bottleneck_text(const PlanReport& report, const Topology& topology) {
  const Plan& plan = report.plan;
  const bool is_inside = plan.inside.seconds_per_iteration > plan.cost.seconds_per_iteration;
  const Cost& cost = is_inside ? plan.inside : plan.cost;
  const LinkUse& use = cost.links[static_cast<std::size_t>(cost.bottleneck)];
  if (cost.coding_seconds > use.seconds) {
    return fmt::format("encoding and decoding, {:.0f} % of the iteration",
                       100 * cost.coding_seconds / report.seconds());
  }
  const double share = 100 * use.seconds / report.seconds();
  const Link& link = topology.link(cost.bottleneck);
  const auto as_busy = std::count_if(cost.links.begin(), cost.links.end(),
                                     [&](const LinkUse& other) { return other.seconds > use.seconds * 0.999; });
  const std::string others =
      as_busy > 1 ? fmt::format(" and {} as busy", counted(static_cast<std::size_t>(as_busy - 1), "link")) : "";
  return fmt::format("{} ({}){}, {:.0f} % of the iteration", printable(link.name), format_bandwidth(link.capacity),
                     others, share);
}

// Where stages of a level run.
std::string place_of(int level) {
  switch (level) {
    case 0:
      return "inside hosts";
    case 1:
      return "between hosts";
    case 2:
      return "between racks";
    case 3:
      return "between sites";
    default:
      return fmt::format("on level {}", level);
  }
}

std::string explain_codecs(const PlanReport& report) {
  const Plan& plan = report.plan;
  if (plan.codecs.is_float32()) {
    return wrap("float32 everywhere: fewer bits would not make an iteration faster within this limit.", "  ", "  ");
  }
  std::string result;
  Codec shortest = Codec::kFloat32;
  for (int level = 0; level <= report.levels; ++level) {
    const Codec codec = plan.codecs.at(level);
    shortest = std::max(shortest, codec);
    result += fmt::format("  {}  {}  {:>5.3g} bits for a value\n", pad_right(place_of(level), 14),
                          pad_right(name_of(codec), 8), 32 * wire_share(codec));
  }
  const std::string gain =
      fmt::format("In float32 the fastest plan takes {}; this one is {} that. Exact averages in {} would take {}.",
                  seconds_text(report.float32_seconds), compare_speed(report.seconds(), report.float32_seconds),
                  name_of(shortest), seconds_text(report.encoded_baseline));
  const std::string price = fmt::format(
      "Rounding adds {} to the schedule's S of {}. A worker encodes and decodes for {} of an iteration, while messages "
      "are under way.",
      format_disagreement(plan.codec_disagreement), format_disagreement(plan.mixing.steady_disagreement),
      seconds_text(plan.cost.coding_seconds));
  const std::string memory =
      report.reference_bytes() == 0
          ? "No round averages everyone, so values travel themselves, not differences to a reference."
          : fmt::format(
                "Differences travel, to what everyone averaged last: every worker keeps that reference, {} bytes "
                "for each parameter.",
                report.reference_bytes());
  return result + "\n" + wrap(gain, "  ", "  ") + wrap(price, "  ", "  ") + wrap(memory, "  ", "  ");
}

// How much of an iteration averages gradients.
std::string regions_text(const PlanReport& report) {
  const Plan& plan = report.plan;
  const std::string time = plan.inside.bottleneck == kNone
                               ? "no link is used for that"
                               : fmt::format("{} of it, which the backward pass hides as far as it lasts",
                                             seconds_text(plan.inside.seconds_per_iteration));
  return wrap(fmt::format("gradients are averaged inside {} in every iteration: {}",
                          counted(plan.replicas.size(), "exact region"), time),
              "  ", "  ");
}

// Groups of which nothing is to be averaged, because they are one replica, are workers alone.
Schedule meetings_of(const Plan& plan) {
  Schedule result = plan.rounds;
  for (Round& round : result) {
    std::vector<Group> groups;
    for (const Group& group : round.groups) {
      if (std::find(plan.replicas.begin(), plan.replicas.end(), group) == plan.replicas.end()) {
        groups.push_back(group);
      } else {
        for (const Rank rank : group) groups.push_back({rank});
      }
    }
    std::sort(groups.begin(), groups.end());
    round.groups = std::move(groups);
  }
  return result;
}

std::string headline(const PlanReport& report, const Topology& topology, const Style& style) {
  const Cost& cost = report.plan.cost;
  const std::string groups = report.group_limit == 0 ? "" : fmt::format(", groups of at most {}", report.group_limit);
  const std::string exact =
      report.exact_inside == ExactInside() ? "" : fmt::format(", exact inside: {}", name_of(report.exact_inside));
  std::string result = wrap(fmt::format("{}: {}, {} of parameters, S at most {}{}{}{}", printable(report.source),
                                        counted(static_cast<std::size_t>(topology.workers()), "worker"),
                                        format_bytes(static_cast<double>(report.bytes)), report.disagreement_limit,
                                        groups, exact, report.published ? ", published schedule" : ""),
                            "", "  ");
  result += "\n";
  if (!has_traffic(report)) {
    const char* why = topology.workers() == 1 ? "there is one worker" : "all workers are on one host";
    return result + fmt::format("  No link is used: {}. In this model every iteration is free.\n", why);
  }
  const auto [best, other] = baselines_of(report);
  result += style.paint(fmt::format("  {} per iteration", seconds_text(report.seconds())), Tint::kBold);
  result += fmt::format(", {} {} ({})\n", compare_speed(report.seconds(), best.seconds), best.name,
                        seconds_text(best.seconds));
  if (!report.plan.replicas.empty()) result += regions_text(report);
  const Tint tint = report.within_limit() ? Tint::kNone : Tint::kRed;
  result += fmt::format("  {}; {}\n", style.paint(limit_text(report), tint), cycle_text(report));
  if (cost.pipeline_seconds > 0) {
    result += fmt::format("  filling and draining the pipeline of its stages adds about {}\n",
                          seconds_text(cost.pipeline_seconds));
  }
  if (cost.latency_seconds > cost.seconds_per_iteration / 2) {
    result += fmt::format("  mostly latency: {} of {}\n", seconds_text(cost.latency_seconds),
                          seconds_text(cost.seconds_per_iteration));
  }
  return result + fmt::format("  bottleneck: {}\n", bottleneck_text(report, topology));
}

std::string draw_baselines(const PlanReport& report, const Style& style) {
  const auto [best, other] = baselines_of(report);
  const Baseline ours{report.published ? "published" : "this plan", report.seconds()};
  const double longest = std::max(ours.seconds, other.seconds);
  std::string result;
  for (const Baseline& row : {ours, best, other}) {
    const bool is_ours = row.name == ours.name;
    const std::string bar = style.bar(row.seconds / longest, kMethodBarColumns);
    result += fmt::format("  {}  {}  {}", pad_right(row.name, 16), pad_left(seconds_text(row.seconds), 8),
                          style.paint(bar, is_ours ? Tint::kGreen : Tint::kCyan));
    if (!is_ours) {
      const std::string gap(kMethodBarColumns - width(bar) + 2, ' ');
      result += fmt::format("{}the plan is {} this", gap, compare_speed(ours.seconds, row.seconds));
    }
    result += "\n";
  }
  return result + "\n" + wrap("Both average everyone exactly in every iteration (S = 0).", "  ", "  ");
}

std::string explain_disagreement(const PlanReport& report) {
  const Mixing& mixing = report.plan.mixing;
  const std::string s = format_disagreement(report.plan.disagreement());
  const std::string meaning = fmt::format(
      "S = {}: in the long run the squared distance of a replica from the average model is {} times the "
      "variance that one iteration of gradient noise adds. 0 is an exact all-reduce in every iteration; 8 "
      "workers in shuffled pairs (a hypercube) have 0.5.",
      s, s);
  const std::string cycle =
      mixing.exact()
          ? std::string("Cycle norm 0: one cycle wipes out any disagreement between the replicas.")
          : fmt::format("Cycle norm {:.3g}: one cycle leaves at most {:.3g} % of any disagreement between replicas.",
                        mixing.cycle_norm, 100 * mixing.cycle_norm);
  const std::string breach =
      report.within_limit() ? "" : fmt::format("This S exceeds the limit of {}.", report.disagreement_limit);
  return (breach.empty() ? "" : wrap(breach, "  ", "  ")) + wrap(meaning, "  ", "  ") + wrap(cycle, "  ", "  ");
}

std::string explain_shards(const PlanReport& report) {
  const std::size_t rounds = report.plan.rounds.size();
  if (report.plan.shards == 1) {
    const char* why = rounds == 1 ? "1 round, 1 shard: every iteration averages the whole vector in the same groups."
                                  : "1 shard: iteration t takes the whole vector through round t of the cycle; times "
                                    "are means over the cycle.";
    return wrap(why, "  ", "  ");
  }
  return wrap(fmt::format("{} shards: the vector is cut into {} slices, and in every iteration each slice goes through "
                          "another round, so that a link carries its mean over the cycle each time, never its peak.",
                          report.plan.shards, report.plan.shards),
              "  ", "  ");
}

// "7 rounds, all meet in 1".
std::string brief_cycle(const LimitRow& row) {
  if (row.rounds == 1 && row.meetings_of_all == 1) return "all meet in every iteration";
  if (row.meetings_of_all == 0) return counted(row.rounds, "round") + ", never all at once";
  return fmt::format("{}, all meet in {}", counted(row.rounds, "round"), row.meetings_of_all);
}

std::string draw_limits(const PlanReport& report, const Style& style) {
  const auto [best, other] = baselines_of(report);
  const std::string head = fmt::format("    {:>10}  {:>8}  {:>13}  {}  {}", "limit on S", "S", "per iteration",
                                       pad_left("against " + best.name, 24), "cycle");
  std::string result = style.paint(head, Tint::kDim) + "\n";
  for (const LimitRow& row : report.limits) {
    std::string line = fmt::format("  {} {:>10}", row.chosen ? style.glyphs().pointer : " ", row.limit);
    if (!row.feasible) {
      line += fmt::format("  not with groups of at most {}: the smallest S is {}", report.group_limit,
                          rounded_up(row.disagreement));
    } else {
      const std::string gain = row.seconds > 0 ? format_ratio(best.seconds / row.seconds) : "";
      line += fmt::format("  {:>8}  {}  {:>24}  {}", format_disagreement(row.disagreement),
                          pad_left(seconds_text(row.seconds), 13), gain, brief_cycle(row));
    }
    result += style.paint(line, row.chosen ? Tint::kBold : Tint::kNone) + "\n";
  }
  return result;
}

}  // namespace

std::string plan_as_text(const PlanReport& report, const Topology& topology, const Style& style) {
  const Plan& plan = report.plan;
  std::string result = headline(report, topology, style);
  result += title("Network", style) + draw_network(topology, style);
  result += title("Who meets whom", style) + draw_rounds(meetings_of(plan), topology, style);
  if (!has_traffic(report)) return result;
  const char* const load = "Load per link and iteration (mean over the cycle)";
  if (plan.cost.bottleneck != kNone) result += title(load, style) + draw_links(plan.cost, topology, style);
  if (plan.inside.bottleneck != kNone) {
    result +=
        title("Load per link and iteration, inside exact regions", style) + draw_links(plan.inside, topology, style);
  }
  if (report.codec.is_auto() || !plan.codecs.is_float32()) {
    result += title("What travels", style) + explain_codecs(report);
  }
  result += title("Against exact all-reduce", style) + draw_baselines(report, style);
  result += title("Disagreement", style) + explain_disagreement(report) + explain_shards(report);
  result += title("What another limit on S would bring", style) + draw_limits(report, style);
  return result;
}

}  // namespace dssync::cli
