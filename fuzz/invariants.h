// What holds for every topology that a reader returns, whatever it read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "dssync/topology/topology.h"

namespace dssync::fuzz {

// Ends the program with the broken condition: a finding, as a crash is.
#define DSSYNC_FUZZ_CHECK(condition)                                               \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

// Whether some word of the text may be a range of more than 10,000 names: its brackets hold more than four digits,
// counting the longest number of each. Such ranges are lawful, but a million hosts take seconds under a sanitizer; unit
// tests cover them.
inline bool asks_for_many_names(std::string_view text) {
  int digits = 0;   // of the word so far
  int longest = 0;  // number in the open bracket
  int number = 0;
  bool inside = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    number = is_digit ? number + 1 : 0;
    if (inside) longest = std::max(longest, number);
    if (digits + longest > 4) return true;
    if (c == '[') inside = true;
    if (c == ']' || c == '\n') {
      digits += longest;
      longest = 0;
      inside = false;
    }
    if (c == ' ' || c == '\n' || c == '{') digits = 0;
  }
  return false;
}

inline void check_nodes(const Topology& topology) {
  int next_position = 0;  // hosts stand in the order of their positions
  for (std::size_t i = 0; i < topology.nodes().size(); ++i) {
    const Node& node = topology.nodes()[i];
    const auto id = static_cast<NodeId>(i);
    DSSYNC_FUZZ_CHECK(node.parent < id);
    DSSYNC_FUZZ_CHECK((node.parent == kNone) == (id == topology.root()));
    DSSYNC_FUZZ_CHECK(node.first == next_position);
    if (node.kind == Node::Kind::kHost) {
      DSSYNC_FUZZ_CHECK(node.children.empty() && node.count > 0);
      next_position += node.count;
    }
    int below = 0;
    for (const NodeId child : node.children) {
      DSSYNC_FUZZ_CHECK(topology.node(child).parent == id);
      below += topology.node(child).count;
    }
    DSSYNC_FUZZ_CHECK(node.kind == Node::Kind::kHost || below == node.count);
  }
  DSSYNC_FUZZ_CHECK(next_position == topology.workers());
}

inline void check_workers(const Topology& topology) {
  for (int position = 0; position < topology.workers(); ++position) {
    const Rank rank = topology.rank_at(position);
    DSSYNC_FUZZ_CHECK(rank >= 0 && rank < topology.workers() && topology.position_of(rank) == position);
    const Node& host = topology.node(topology.host_at(position));
    DSSYNC_FUZZ_CHECK(host.first <= position && position < host.first + host.count);
    if (position < 100) DSSYNC_FUZZ_CHECK(!topology.worker_name(rank).empty());
  }
}

inline void check_topology(const Topology& topology) {
  DSSYNC_FUZZ_CHECK(topology.workers() >= 1 && topology.workers() <= Topology::kMaxWorkers);
  DSSYNC_FUZZ_CHECK(topology.links().size() == 2 * (topology.nodes().size() - 1));
  for (const Link& link : topology.links()) {
    DSSYNC_FUZZ_CHECK(link.capacity.bytes_per_second > 0 && std::isfinite(link.capacity.bytes_per_second));
    DSSYNC_FUZZ_CHECK(link.latency.count() >= 0 && std::isfinite(link.latency.count()));
  }
  check_nodes(topology);
  check_workers(topology);
}

}  // namespace dssync::fuzz
