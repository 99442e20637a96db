// `dssync bench --format json`: docs/command-line.md describes every key.
#include "bench/bench_report.h"
#include "dssync/json/json.h"

namespace dssync::cli {
namespace {

Json links_json(const MethodFigures& method, const Topology& topology) {
  Json links = Json::array();
  for (std::size_t index = 0; index < topology.links().size(); ++index) {
    const Link& link = topology.links()[index];
    const bool is_counted = !method.bytes.empty();
    links.push_back({{"name", link.name},
                     {"predicted_bytes_per_iteration", method.predicted.links[index].bytes_per_iteration},
                     {"bytes_per_iteration", is_counted ? Json(method.bytes[index]) : Json(nullptr)},
                     {"share_of_capacity",
                      is_counted ? Json(share_of(method, topology, static_cast<LinkId>(index))) : Json(nullptr)},
                     {"capacity_bytes_per_second", link.capacity.bytes_per_second}});
  }
  return links;
}

Json method_json(const MethodFigures& method, const Topology& topology) {
  const Spread spread = spread_of(method.seconds);
  const LinkId bottleneck = method.predicted.bottleneck;
  Json json = {
      {"name", name_of(method.method)},
      {"seconds_per_iteration", spread.median},
      {"least_seconds", spread.least},
      {"most_seconds", spread.most},
      {"predicted_seconds", method.predicted_seconds},
      {"measured_over_predicted",
       method.predicted_seconds > 0 ? Json(spread.median / method.predicted_seconds) : Json(nullptr)},
      {"iterations_per_block", method.iterations},
      {"blocks", method.seconds},
      {"cpu_busy_share", method.cpu_share},
      {"bottleneck", bottleneck == kNone ? Json(nullptr) : Json(topology.link(bottleneck).name)},
      {"bottleneck_share",
       bottleneck == kNone || method.bytes.empty() ? Json(nullptr) : Json(share_of(method, topology, bottleneck))}};
  if (method.plan) json["plan"] = json_of(*method.plan);
  json["links"] = links_json(method, topology);
  return json;
}

}  // namespace

std::string bench_as_json(const BenchReport& report, const Topology& topology) {
  Json json = {{"topology", report.source},
               {"emulated", report.emulated},
               {"workers", topology.workers()},
               {"bytes", report.options.bytes},
               {"compute_seconds", report.options.compute.count()},
               {"repeats", report.options.repeats},
               {"methods", Json::array()}};
  for (const MethodFigures& method : report.methods) json["methods"].push_back(method_json(method, topology));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dssync::cli
