#include "dssync/json/json.h"

#include "dssync/runlog/schema.h"

namespace dssync {
namespace {

Json json_of(const Node& node, const Topology& topology) {
  const bool is_host = node.kind == Node::Kind::kHost;
  const bool is_root = node.parent == kNone;
  Json ranks = Json::array();
  for (int position = node.first; is_host && position < node.first + node.count; ++position) {
    ranks.push_back(topology.rank_at(position));
  }
  return {{log_key::kName, node.name},
          {log_key::kKind, is_host ? "host" : "switch"},
          {log_key::kParent, is_root ? Json(nullptr) : Json(topology.node(node.parent).name)},
          {log_key::kBytesPerSecond, is_root ? Json(nullptr) : Json(topology.link(node.up).capacity.bytes_per_second)},
          {log_key::kLatencySeconds, is_root ? 0.0 : topology.link(node.up).latency.count()},
          {log_key::kRanks, ranks}};
}

}  // namespace

Json json_of(const Schedule& schedule) {
  Json result = Json::array();
  for (const Round& round : schedule) {
    result.push_back({{log_key::kLabel, round.label}, {log_key::kGroups, round.groups}});
  }
  return result;
}

Json json_of(const Mixing& mixing) {
  return {{log_key::kCycleNorm, mixing.cycle_norm},
          {log_key::kSteadyDisagreement, mixing.steady_disagreement},
          {log_key::kExact, mixing.exact()}};
}

Json json_of(const Cost& cost, const Topology& topology) {
  Json links = Json::array();
  for (std::size_t i = 0; i < cost.links.size(); ++i) {
    const Link& link = topology.links()[i];
    links.push_back({{log_key::kName, link.name},
                     {log_key::kBytesPerIteration, cost.links[i].bytes_per_iteration},
                     {log_key::kSeconds, cost.links[i].seconds},
                     {log_key::kCapacityBytesPerSecond, link.capacity.bytes_per_second}});
  }
  const Json bottleneck = cost.bottleneck == kNone ? Json(nullptr) : Json(topology.link(cost.bottleneck).name);
  Json json = {{log_key::kSecondsPerIteration, cost.seconds_per_iteration},
               {log_key::kLatencySeconds, cost.latency_seconds},
               {log_key::kPipelineSeconds, cost.pipeline_seconds}};
  if (cost.coding_seconds > 0) json[log_key::kCodingSeconds] = cost.coding_seconds;
  json[log_key::kBottleneck] = bottleneck;
  json[log_key::kLinks] = links;
  return json;
}

Json json_of(const Codecs& codecs) {
  Json names = Json::array();
  for (const Codec codec : codecs.by_level()) names.push_back(name_of(codec));
  return names;
}

Json json_of(const Plan& plan) {
  Json json{{log_key::kShards, plan.shards},
            {log_key::kRounds, json_of(plan.rounds)},
            {log_key::kMixing, json_of(plan.mixing)}};
  if (!plan.replicas.empty()) json[log_key::kReplicas] = plan.replicas;
  if (!plan.codecs.is_float32()) {
    json[log_key::kCodecs] = json_of(plan.codecs);
    json[log_key::kCodecDisagreement] = plan.codec_disagreement;
  }
  return json;
}

Json json_of(const Topology& topology) {
  Json nodes = Json::array();
  for (const Node& node : topology.nodes()) nodes.push_back(json_of(node, topology));
  return nodes;
}

}  // namespace dssync
