#include "dssync/planner/traffic.h"

#include <algorithm>

#include "dssync/topology/routes.h"

namespace dssync {
namespace {

NodeId host_of(Rank rank, const Topology& topology) { return topology.host_at(topology.position_of(rank)); }

// Adds up loads that come in any order.
LinkLoads merged(LinkLoads loads) {
  std::sort(loads.begin(), loads.end());
  LinkLoads result;
  for (const auto& [link, bytes] : loads) {
    if (result.empty() || result.back().first != link) {
      result.emplace_back(link, 0.0);
    }
    result.back().second += bytes;
  }
  return result;
}

// Bytes that all messages of the stages put on links. Links may come several times until `finish`.
class LoadMeter {
 public:
  LoadMeter(const Topology& topology, double bytes, int columns) : topology_(topology), bytes_(bytes * columns) {}

  // Returns the latency of the stage.
  Seconds add(const Stage& stage) {
    return stage.kind == Stage::Kind::kAllReduce ? add_ring(stage) : add_exchange(stage);
  }

  LinkLoads finish() { return merged(std::move(loads_)); }

 private:
  Seconds add_ring(const Stage& stage) {
    const std::size_t k = stage.members.size();
    const double bytes = sent_bytes(stage.kind, k, stage.bounds, 0, 1.0) * wire_bytes(stage);
    Seconds slowest{0};
    for (std::size_t i = 0; i < k; ++i) {
      const NodeId from = host_of(stage.members[i], topology_);
      Seconds latency{0};
      for (const LinkId link : route(topology_, from, host_of(stage.members[(i + 1) % k], topology_))) {
        loads_.emplace_back(link, bytes);
        latency += topology_.link(link).latency;
      }
      slowest = std::max(slowest, latency);
    }
    return slowest * (2.0 * (static_cast<double>(k) - 1));
  }

  // The members below a cable, and what they own.
  struct Below {
    NodeId node;
    double members;
    double owned;
  };

  // Everyone sends to every other member what that one shall own (scatter) or what it owns itself (gather). For a cable
  // with the members below it: all of them send what is owned beyond it, all others send what is owned below it.
  Seconds add_exchange(const Stage& stage) {
    std::vector<Below> below;
    const Seconds latency = climb(stage, below);
    std::stable_sort(below.begin(), below.end(), [](const Below& a, const Below& b) { return a.node < b.node; });
    const auto all = static_cast<double>(stage.members.size());
    const double slice = stage.bounds.back() - stage.bounds.front();
    for (std::size_t i = 0; i < below.size();) {
      Below sum{below[i].node, 0, 0};
      for (; i < below.size() && below[i].node == sum.node; ++i) {
        sum.members += below[i].members;
        sum.owned += below[i].owned;
      }
      double out = sum.members * (slice - sum.owned) * wire_bytes(stage);
      double in = (all - sum.members) * sum.owned * wire_bytes(stage);
      if (stage.kind == Stage::Kind::kAllGather) {
        std::swap(out, in);
      }
      loads_.emplace_back(topology_.node(sum.node).up, out);
      loads_.emplace_back(topology_.node(sum.node).down, in);
    }
    return latency;
  }

  // Enters every member at all nodes from its host up to where the members meet. Returns the longest latency from one
  // member to another.
  Seconds climb(const Stage& stage, std::vector<Below>& below) const {
    const NodeId top =
        meeting_point(topology_, host_of(stage.members.front(), topology_), host_of(stage.members.back(), topology_));
    Seconds longest{0};
    Seconds second{0};
    for (std::size_t i = 0; i < stage.members.size(); ++i) {
      Seconds latency{0};
      for (NodeId at = host_of(stage.members[i], topology_); at != top; at = topology_.node(at).parent) {
        below.push_back({at, 1, stage.bounds[i + 1] - stage.bounds[i]});
        latency += topology_.link(topology_.node(at).up).latency;
      }
      second = std::max(second, std::min(longest, latency));
      longest = std::max(longest, latency);
    }
    return longest + second;
  }

  // For the whole vector.
  double wire_bytes(const Stage& stage) const { return bytes_ * wire_share(stage.codec); }

  const Topology& topology_;
  const double bytes_;
  LinkLoads loads_;
};

}  // namespace

LinkLoads loads_from(const std::vector<double>& bytes) {
  LinkLoads loads;
  for (std::size_t link = 0; link < bytes.size(); ++link) {
    if (bytes[link] != 0) {
      loads.emplace_back(static_cast<LinkId>(link), bytes[link]);
    }
  }
  return loads;
}

std::int64_t encoded_sent_bytes(Stage::Kind kind, Codec codec, std::size_t members,
                                const std::vector<std::int64_t>& bounds, std::size_t from, std::int64_t unit) {
  if (codec == Codec::kFloat32) return sent_bytes(kind, members, bounds, from, unit);
  std::int64_t sum = 0;
  for (std::size_t to = 0; to < members; ++to) {
    sum += encoded_bytes(codec, message_bytes<std::int64_t>(kind, members, bounds, from, to, 1));
  }
  return sum;
}

std::vector<MemberTraffic> member_traffic(const Stage& stage, const Topology& topology) {
  const std::size_t k = stage.members.size();
  const double unit = wire_share(stage.codec);
  std::vector<MemberTraffic> members(k);
  const auto send = [&](std::size_t from, std::size_t to) {
    const double bytes = message_bytes(stage.kind, k, stage.bounds, from, to, unit);
    if (bytes <= 0) return;
    const NodeId host = host_of(stage.members[from], topology);
    for (const LinkId link : route(topology, host, host_of(stage.members[to], topology))) {
      members[from].outgoing.emplace_back(link, bytes);
      members[to].incoming.emplace_back(link, bytes);
    }
  };
  for (std::size_t from = 0; from < k; ++from) {
    members[from].sent = sent_bytes(stage.kind, k, stage.bounds, from, unit);
    if (stage.kind == Stage::Kind::kAllReduce) {
      send(from, (from + 1) % k);
    } else {
      for (std::size_t to = 0; to < k; ++to) send(from, to);
    }
  }
  for (MemberTraffic& member : members) {
    member.outgoing = merged(std::move(member.outgoing));
    member.incoming = merged(std::move(member.incoming));
  }
  return members;
}

Seconds GroupLoad::busiest(const Topology& topology) const {
  double most = 0;
  for (const auto& [link, link_bytes] : bytes) {
    most = std::max(most, link_bytes / topology.link(link).capacity.bytes_per_second);
  }
  return Seconds(most);
}

double coded_share(const Stage& stage, std::size_t member) {
  if (stage.codec == Codec::kFloat32) return 0;
  const double all = stage.bounds.back() - stage.bounds.front();
  if (stage.kind == Stage::Kind::kAllReduce) return 3 * all;
  const double own = stage.bounds[member + 1] - stage.bounds[member];
  if (stage.kind == Stage::Kind::kAllGather) return own + all;
  return all - own + (static_cast<double>(stage.members.size()) - 1) * own;
}

namespace {

// By the member that codes most, for each byte of the vector.
double most_coded(const Lowering& lowering, const Topology& topology) {
  std::vector<double> coded;
  for (const std::vector<Stage>& phase : lowering.phases) {
    for (const Stage& stage : phase) {
      if (stage.codec == Codec::kFloat32) continue;
      coded.resize(static_cast<std::size_t>(topology.workers()), 0);
      for (std::size_t i = 0; i < stage.members.size(); ++i) {
        coded[static_cast<std::size_t>(stage.members[i])] += coded_share(stage, i);
      }
    }
  }
  return coded.empty() ? 0 : *std::max_element(coded.begin(), coded.end());
}

}  // namespace

GroupLoad load_of(const Stage& stage, const Topology& topology, double bytes, int columns) {
  LoadMeter meter(topology, bytes, columns);
  const Seconds latency = meter.add(stage);
  return {meter.finish(), latency, Seconds(0)};
}

GroupLoad load_of(const Lowering& lowering, const Topology& topology, double bytes, int columns) {
  LoadMeter meter(topology, bytes, columns);
  GroupLoad load;
  for (const std::vector<Stage>& phase : lowering.phases) {
    Seconds slowest{0};
    for (const Stage& stage : phase) {
      slowest = std::max(slowest, meter.add(stage));
    }
    load.latency += slowest;
  }
  load.bytes = meter.finish();
  load.coding = Seconds(most_coded(lowering, topology) * bytes / lowering.codec_bytes_per_second);
  return load;
}

}  // namespace dssync
