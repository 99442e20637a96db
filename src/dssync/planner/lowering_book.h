// How each group can be averaged, and what that puts on links, level by level: worked out once, for whatever codecs.
// Not thread-safe: it remembers.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "dssync/planner/codecs.h"
#include "dssync/planner/replicas.h"
#include "dssync/planner/stages.h"
#include "dssync/planner/traffic.h"
#include "dssync/topology/topology.h"

namespace dssync {

class LoweringBook {
 public:
  // The topology must outlive the book. Groups are unions of replicas.
  LoweringBook(const Topology& topology, Replicas replicas);

  // What the stages of one level put on links, for each byte of the vector.
  struct LevelLoad {
    int level = 0;
    GroupLoad plain;    // in float32
    GroupLoad encoded;  // in a codec, with as many bytes on the wire as in float32; `coding` in seconds at 1 byte/s
  };
  struct Way {
    Lowering lowering;                // in float32
    std::vector<LevelLoad> levels{};  // once they are needed
  };
  struct Page {
    std::optional<Way> ring;  // nothing where replicas have several workers
    Way hierarchy;
  };
  // The reference stays valid as long as the book.
  Page& page_of(const Group& group);

  // Of a way of this book. Where stages of one phase are on several levels and in codecs, their latencies are added up.
  GroupLoad load_of(Way& way, const Codecs& codecs, double bytes);
  Lowering lowering_of(const Way& way, const Codecs& codecs) const { return encoded(way.lowering, topology_, codecs); }

  const Replicas& replicas() const { return replicas_; }

 private:
  std::vector<LevelLoad> levels_of(const Lowering& lowering) const;

  const Topology& topology_;
  const Replicas replicas_;
  const std::vector<int> node_levels_;
  std::map<Group, Page> pages_;
  std::vector<double> sums_;  // by link; zeros between calls
};

}  // namespace dssync
