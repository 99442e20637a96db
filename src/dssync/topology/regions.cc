// The tree of regions from the tree of switches.
#include "dssync/topology/regions.h"

#include <algorithm>
#include <utility>

#include "dssync/topology/routes.h"

namespace dssync {
namespace {

// Cables whose speeds differ by less than this factor count as equally fast, and no place is split into more classes
// than this.
constexpr double kSameSpeed = 1.15;
constexpr std::size_t kMaxClasses = 8;

// A part of a region under construction: a whole region, or a worker.
struct Part {
  int region = kNone;  // index into made_
  int position = kNone;
  double bytes_per_second = 0;  // of the cable that joins it to the place above; 0: no cable (workers of one host)
};

class RegionFinder {
 public:
  explicit RegionFinder(const Topology& topology) : topology_(topology) {}

  std::vector<Region> find() {
    const Part top = part_of(topology_.root());
    if (top.region == kNone) {  // one worker in all
      Region only;
      only.name = topology_.node(topology_.root()).name;
      only.loose = only.members = {top.position};
      return {only};
    }
    flatten(top.region, kNone, 0);
    return std::move(flat_);
  }

 private:
  // What the node contributes to its parent. REQUIRES: a worker below it.
  Part part_of(NodeId id) {
    const Node& node = topology_.node(id);
    std::vector<Part> parts;
    if (node.kind == Node::Kind::kHost) {
      for (int position = node.first; position < node.first + node.count; ++position) {
        parts.push_back({kNone, position, 0});
      }
    } else {
      for (const NodeId child : node.children) {
        if (topology_.node(child).count > 0) {
          parts.push_back(part_of(child));
        }
      }
    }
    Part whole = join(split_by_speed(parts, node.name), node.name);
    if (id != topology_.root()) {
      const double cable = cable_capacity(topology_, id).bytes_per_second;
      whole.bytes_per_second = whole.bytes_per_second > 0 ? std::min(whole.bytes_per_second, cable) : cable;
    }
    return whole;
  }

  // Nests the parts from the fastest class outwards: {{{fastest}, {next}}, {slowest}}. One class stays as it is.
  std::vector<Part> split_by_speed(const std::vector<Part>& parts, const std::string& name) {
    std::vector<std::vector<Part>> classes = classes_of(parts);
    std::vector<Part> inner = std::move(classes.front());
    for (std::size_t i = 1; i < classes.size(); ++i) {
      const std::string suffix = i == 1 ? " (fast part)" : " (faster part)";
      const Part faster = join(inner, name + suffix);
      const Part slower = join(classes[i], name + " (slow part)");
      inner = {faster, slower};
    }
    return inner;
  }

  // The parts by speed of their cables, fastest class first; the order within a class is kept.
  static std::vector<std::vector<Part>> classes_of(const std::vector<Part>& parts) {
    std::vector<double> speeds;
    for (const Part& part : parts) {
      speeds.push_back(part.bytes_per_second);
    }
    std::sort(speeds.rbegin(), speeds.rend());
    std::vector<std::pair<double, double>> steps;  // where speed falls: by which factor, and the speed before
    for (std::size_t i = 1; i < speeds.size(); ++i) {
      if (speeds[i - 1] > kSameSpeed * speeds[i]) {
        steps.emplace_back(speeds[i - 1] / speeds[i], speeds[i - 1]);
      }
    }
    std::sort(steps.rbegin(), steps.rend());
    steps.resize(std::min(steps.size(), kMaxClasses - 1));
    std::vector<double> bounds;  // slowest speed of each class but the last
    for (const auto& [factor, speed] : steps) {
      bounds.push_back(speed);
    }
    std::sort(bounds.rbegin(), bounds.rend());
    std::vector<std::vector<Part>> classes(bounds.size() + 1);
    for (const Part& part : parts) {
      std::size_t slot = 0;
      while (slot < bounds.size() && part.bytes_per_second < bounds[slot]) {
        ++slot;
      }
      classes[slot].push_back(part);
    }
    return classes;
  }

  // One part out of several: a new region, or the part itself where there is only one.
  Part join(const std::vector<Part>& parts, const std::string& name) {
    if (parts.size() == 1) {
      return parts.front();
    }
    Region region;
    region.name = name;
    for (const Part& part : parts) {
      if (part.region == kNone) {
        region.loose.push_back(part.position);
        region.members.push_back(part.position);
      } else {
        const std::vector<int>& inner = made_[static_cast<std::size_t>(part.region)].members;
        region.children.push_back(part.region);
        region.members.insert(region.members.end(), inner.begin(), inner.end());
      }
    }
    std::sort(region.members.begin(), region.members.end());
    made_.push_back(std::move(region));
    return {static_cast<int>(made_.size()) - 1, kNone, 0};
  }

  // Moves the tree below made_[made] to flat_, parents first, and renumbers the children.
  int flatten(int made, int parent, int depth) {
    const int index = static_cast<int>(flat_.size());
    flat_.push_back(std::move(made_[static_cast<std::size_t>(made)]));
    flat_.back().parent = parent;
    flat_.back().depth = depth;
    const std::vector<int> children = flat_.back().children;
    std::vector<int> renumbered;
    for (const int child : children) {
      renumbered.push_back(flatten(child, index, depth + 1));
    }
    flat_[static_cast<std::size_t>(index)].children = std::move(renumbered);
    return index;
  }

  const Topology& topology_;
  std::vector<Region> made_;  // children before parents
  std::vector<Region> flat_;
};

}  // namespace

std::vector<Region> find_regions(const Topology& topology) { return RegionFinder(topology).find(); }

}  // namespace dssync
