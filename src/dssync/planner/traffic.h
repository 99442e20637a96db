// Bytes on the wire: what the members of a stage send to each other, and what that puts on links. All accounts of
// traffic come from here: the cost model's, those of the table of stages, and those of whoever carries stages out.
// Pure; thread-safe.
//
// Messages are the definition: member i of a stage sends so much to member j, along the route between their hosts. The
// loads of a whole stage are added up without looking at each pair of members; they are the sum of the messages' loads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "dssync/codec/codec.h"
#include "dssync/planner/stages.h"
#include "dssync/topology/topology.h"

namespace dssync {

// Bytes by link, ascending links, each once.
using LinkLoads = std::vector<std::pair<LinkId, double>>;

// Those links that carry something, from the bytes of all links.
LinkLoads loads_from(const std::vector<double>& bytes);

// What member `from` of a stage sends to member `to`, with bounds in any unit: fractions of the vector (double), or
// elements (std::int64_t). `unit` is the number of bytes that 1 stands for. Integers are rounded down once, at the end.
template <typename Number>
Number message_bytes(Stage::Kind kind, std::size_t members, const std::vector<Number>& bounds, std::size_t from,
                     std::size_t to, Number unit) {
  if (from == to) return 0;
  const auto slice = [&](std::size_t i) { return (bounds[i + 1] - bounds[i]) * unit; };
  if (kind == Stage::Kind::kReduceScatter) return slice(to);
  if (kind == Stage::Kind::kAllGather) return slice(from);
  if (to != (from + 1) % members) return 0;
  // 2 (k - 1) steps around the ring, each with 1/k of the slice.
  const auto all = static_cast<Number>(members);
  const Number steps = 2 * (all - 1);
  return std::is_integral_v<Number> ? steps * slice(0) / all : steps / all * slice(0);
}

// What a member sends in all.
template <typename Number>
Number sent_bytes(Stage::Kind kind, std::size_t members, const std::vector<Number>& bounds, std::size_t from,
                  Number unit) {
  if (kind == Stage::Kind::kAllReduce) {
    return message_bytes(kind, members, bounds, from, (from + 1) % members, unit);
  }
  Number sum = 0;
  for (std::size_t to = 0; to < members; ++to) sum += message_bytes(kind, members, bounds, from, to, unit);
  return sum;
}

// The same of a stage whose values travel in a codec, to the byte: bounds in elements, of which each has `unit` bytes
// where they travel as they are. Every message is encoded on its own. REQUIRES: an all-reduce is of two, or float32.
std::int64_t encoded_sent_bytes(Stage::Kind kind, Codec codec, std::size_t members,
                                const std::vector<std::int64_t>& bounds, std::size_t from, std::int64_t unit);

// What one member's own messages amount to, for each byte of the vector.
struct MemberTraffic {
  double sent = 0;
  LinkLoads outgoing;  // on the links that what it sends crosses
  LinkLoads incoming;  // on the links that what it receives crosses
};

// By index in stage.members.
std::vector<MemberTraffic> member_traffic(const Stage& stage, const Topology& topology);

// What a member encodes and decodes, for each byte of the vector: what it sends and what it gets. Two that exchange,
// and who gathers, decode their own as well, so that all end with the same bits.
double coded_share(const Stage& stage, std::size_t member);

// What one average of one group, or one stage of it, puts on each link it uses, and the latency of its steps.
struct GroupLoad {
  LinkLoads bytes;
  Seconds latency{0};
  Seconds coding{0};  // of the member that encodes and decodes most; not of a single stage

  // The busiest link's time.
  Seconds busiest(const Topology& topology) const;
  // The busiest link's time, or that of coding, which goes on beside it; plus latency.
  Seconds duration(const Topology& topology) const { return std::max(busiest(topology), coding) + latency; }
};

// For a vector of so many bytes. `columns`: so many vectors are averaged side by side by workers on the same hosts
// (columns of shards), and share their cables.
GroupLoad load_of(const Stage& stage, const Topology& topology, double bytes, int columns = 1);
GroupLoad load_of(const Lowering& lowering, const Topology& topology, double bytes, int columns = 1);

}  // namespace dssync
