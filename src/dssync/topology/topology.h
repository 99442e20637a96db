// The network as dssync sees it: hosts with workers, a tree of switches, and two links (one per direction) on every
// cable. Immutable once built, so it may be shared between threads.
//
// Two orders of the workers exist. A worker's *rank* follows the order of the hosts in the file, then of the workers on
// a host. Its *position* follows the tree, depth first, so that every region is a contiguous range of positions.
#pragma once

#include <string>
#include <vector>

#include "dssync/base/units.h"

namespace dssync {

using Rank = int;
using NodeId = int;
using LinkId = int;
inline constexpr int kNone = -1;

// One direction of a cable.
struct Link {
  std::string name;  // "a0 out", "a0 in" for a host; "rack-a up", "rack-a down" for a switch
  Bandwidth capacity;
  Seconds latency{0};
};

struct Node {
  enum class Kind { kSwitch, kHost };
  Kind kind = Kind::kSwitch;
  std::string name;
  NodeId parent = kNone;
  std::vector<NodeId> children;  // of a switch, in the order of the file, switches before hosts
  LinkId up = kNone;             // towards the root; kNone at the root
  LinkId down = kNone;           // from the root
  int first = 0;                 // the workers below: positions [first, first + count)
  int count = 0;
};

class Topology {
 public:
  // What a reader collects. `line` is where the entry stands in the file, 0 if nowhere; it only serves error messages.
  struct SwitchSpec {
    std::string name;
    std::string parent;  // empty: the root
    Bandwidth uplink;    // ignored at the root
    Seconds latency{0};
    int line = 0;
  };
  struct HostSpec {
    std::string name;
    std::string switch_name;
    Bandwidth nic;
    Seconds latency{0};
    int workers = 1;
    int line = 0;
  };

  // Builds the tree. Throws InputError(source, line, ...) unless the switches form one tree, names are unique among
  // switches and hosts together, every host's switch exists, rates are positive, there is at least one worker and at
  // most kMaxWorkers, and switches nest at most kMaxDepth deep (what walks the tree may recurse).
  static Topology build(const std::vector<SwitchSpec>& switches, const std::vector<HostSpec>& hosts,
                        const std::string& source);
  static constexpr int kMaxWorkers = 1'000'000;
  static constexpr int kMaxDepth = 64;

  int workers() const { return static_cast<int>(rank_at_.size()); }
  const std::vector<Node>& nodes() const { return nodes_; }  // a parent stands before its children
  const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  NodeId root() const { return 0; }
  const std::vector<Link>& links() const { return links_; }
  const Link& link(LinkId id) const { return links_[static_cast<std::size_t>(id)]; }

  Rank rank_at(int position) const { return rank_at_[static_cast<std::size_t>(position)]; }
  int position_of(Rank rank) const { return position_of_[static_cast<std::size_t>(rank)]; }
  NodeId host_at(int position) const { return host_at_[static_cast<std::size_t>(position)]; }

  // The same network with other capacities, by LinkId. REQUIRES: as many as there are links, all above zero.
  Topology with_capacities(const std::vector<Bandwidth>& capacities) const;
  // The same network with links that take no time of their own.
  Topology without_latency() const;

  // "a0", or "a0/3" for the fourth worker of a host that has several. By rank.
  std::string worker_name(Rank rank) const;

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Rank> rank_at_;
  std::vector<int> position_of_;
  std::vector<NodeId> host_at_;
};

}  // namespace dssync
