#include "dssync/json/json.h"

namespace dssync {
namespace {

Json json_of(const Node& node, const Topology& topology) {
  const bool is_host = node.kind == Node::Kind::kHost;
  const bool is_root = node.parent == kNone;
  Json ranks = Json::array();
  for (int position = node.first; is_host && position < node.first + node.count; ++position) {
    ranks.push_back(topology.rank_at(position));
  }
  return {{"name", node.name},
          {"kind", is_host ? "host" : "switch"},
          {"parent", is_root ? Json(nullptr) : Json(topology.node(node.parent).name)},
          {"bytes_per_second", is_root ? Json(nullptr) : Json(topology.link(node.up).capacity.bytes_per_second)},
          {"latency_seconds", is_root ? 0.0 : topology.link(node.up).latency.count()},
          {"ranks", ranks}};
}

}  // namespace

Json json_of(const Schedule& schedule) {
  Json result = Json::array();
  for (const Round& round : schedule) result.push_back({{"label", round.label}, {"groups", round.groups}});
  return result;
}

Json json_of(const Mixing& mixing) {
  return {{"cycle_norm", mixing.cycle_norm},
          {"steady_disagreement", mixing.steady_disagreement},
          {"exact", mixing.exact()}};
}

Json json_of(const Cost& cost, const Topology& topology) {
  Json links = Json::array();
  for (std::size_t i = 0; i < cost.links.size(); ++i) {
    const Link& link = topology.links()[i];
    links.push_back({{"name", link.name},
                     {"bytes_per_iteration", cost.links[i].bytes_per_iteration},
                     {"seconds", cost.links[i].seconds},
                     {"capacity_bytes_per_second", link.capacity.bytes_per_second}});
  }
  const Json bottleneck = cost.bottleneck == kNone ? Json(nullptr) : Json(topology.link(cost.bottleneck).name);
  return {{"seconds_per_iteration", cost.seconds_per_iteration},
          {"latency_seconds", cost.latency_seconds},
          {"pipeline_seconds", cost.pipeline_seconds},
          {"bottleneck", bottleneck},
          {"links", links}};
}

Json json_of(const Topology& topology) {
  Json nodes = Json::array();
  for (const Node& node : topology.nodes()) nodes.push_back(json_of(node, topology));
  return nodes;
}

}  // namespace dssync
