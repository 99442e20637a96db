// `dssync plan --format json`: docs/command-line.md describes every key. Keys stand in a fixed order; each element of a
// long list has its own line, so that two plans can be compared with diff.
#include "dssync/json/json.h"
#include "plan/plan_report.h"

namespace dssync::cli {
namespace {

Json names_json(const Topology& topology) {
  Json result = Json::array();
  for (Rank rank = 0; rank < topology.workers(); ++rank) result.push_back(topology.worker_name(rank));
  return result;
}

Json speedup(double baseline, double seconds) { return seconds > 0 ? Json(baseline / seconds) : Json(nullptr); }

// By level, from inside hosts outwards.
Json codecs_json(const PlanReport& report) {
  Json names = Json::array();
  for (int level = 0; level <= report.levels; ++level) names.push_back(name_of(report.plan.codecs.at(level)));
  return names;
}

Json coding_json(const PlanReport& report) {
  Json bits = Json::array();
  for (int level = 0; level <= report.levels; ++level) bits.push_back(32 * wire_share(report.plan.codecs.at(level)));
  return {{"bits_by_level", bits},
          {"float32_seconds", report.float32_seconds},
          {"bytes_per_second", report.plan.codecs.bytes_per_second()},
          {"reference_bytes_per_parameter", report.reference_bytes()}};
}

Json document(const PlanReport& report, const Topology& topology) {
  const double seconds = report.seconds();
  Json json;
  json["topology"] = report.source;
  json["notes"] = report.notes;
  json["bytes"] = report.bytes;
  json["disagreement_limit"] = report.disagreement_limit;
  json["within_limit"] = report.within_limit();
  json["group_limit"] = report.group_limit == 0 ? Json(nullptr) : Json(report.group_limit);
  const bool has_regions = report.exact_inside != ExactInside();
  if (has_regions) json["exact_inside"] = name_of(report.exact_inside);
  json["schedule"] = report.published ? "published" : "auto";
  json["workers"] = topology.workers();
  json["names"] = names_json(topology);
  json.update(json_of(report.plan));
  if (!report.plan.codecs.is_float32()) {
    json["codecs"] = codecs_json(report);
    json["coding"] = coding_json(report);
  }
  json["cost"] = json_of(report.plan.cost, topology);
  if (has_regions) json["inside"] = json_of(report.plan.inside, topology);
  json["baselines"] = {{"bsp-ring", report.ring_seconds}, {"bsp-hierarchical", report.hierarchical_seconds}};
  json["speedups"] = {{"bsp-ring", speedup(report.ring_seconds, seconds)},
                      {"bsp-hierarchical", speedup(report.hierarchical_seconds, seconds)}};
  return json;
}

// Objects at the top and lists of objects are spread over lines; everything below stays on one.
void write(const Json& json, const std::string& indent, std::string& out) {
  const bool spread_list = json.is_array() && !json.empty() && json.front().is_object();
  const bool spread_object = json.is_object() && indent.size() < 4;
  if (!spread_list && !spread_object) {
    out += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const std::string inner = indent + "  ";
  const char* separator = "\n";
  out += spread_list ? "[" : "{";
  for (const auto& [key, value] : json.items()) {
    out += separator + inner;
    if (!spread_list) out += Json(key).dump() + ": ";
    write(value, inner, out);
    separator = ",\n";
  }
  out += "\n" + indent + (spread_list ? "]" : "}");
}

}  // namespace

std::string plan_as_json(const PlanReport& report, const Topology& topology) {
  std::string result;
  write(document(report, topology), "", result);
  return result + "\n";
}

}  // namespace dssync::cli
