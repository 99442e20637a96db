// The search over cadences of nested regions.
//
// For a cycle of T rounds and an allowed load `tau` (seconds per iteration on any link), the least disagreement follows
// from the root downwards: once the cadences of the regions above are chosen, each child region is a problem of its
// own. Least tau for which it stays within the limit: by bisection, for every T.
#include "dssync/planner/nested_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dssync/base/index.h"
#include "dssync/planner/cadence.h"
#include "dssync/planner/grid.h"
#include "dssync/planner/rounds.h"

namespace dssync {
namespace {

constexpr double kUnreachable = std::numeric_limits<double>::infinity();
constexpr double kWorthwhile = 0.995;  // a longer cycle means more shards, so it must be this much faster
constexpr int kEveryLength = 16;       // up to here every length is tried, beyond it some
constexpr std::size_t kMaxDigits = 6;
constexpr int kMaxTrials = 50'000;  // per length of the cycle; only deep irregular trees come near it

// The grids of a region's parts worth trying: the smallest groups with few digits, and the squarest.
std::vector<std::vector<int>> grids_of(int parts) {
  std::vector<std::vector<int>> grids;
  for (int group = 2; group < parts && grids.size() < 2; ++group) {
    const std::vector<int> digits = grid_digits(parts, group);
    const bool is_news = !digits.empty() && digits.size() <= kMaxDigits && digits.back() == group;
    if (is_news && (grids.empty() || digits.size() == 2)) {
      grids.push_back(digits);
    }
  }
  return grids;
}

double rounded(double value) {
  if (value == 0) {
    return 0;
  }
  const double scale = std::pow(10, 9 - std::ceil(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

// Numbers of some links, which are zero at first, in a vector for all links that is used again and again.
class LinkSums {
 public:
  // `sums` are zeros, and will be again. They must outlive it.
  explicit LinkSums(std::vector<double>& sums) : sums_(sums) {}
  ~LinkSums() {
    for (const LinkId link : links_) sums_[index(link)] = 0;
  }
  LinkSums(const LinkSums&) = delete;
  LinkSums& operator=(const LinkSums&) = delete;

  // REQUIRES: is above zero before it is asked for again.
  double& at(LinkId link) {
    double& sum = sums_[index(link)];
    if (sum == 0) links_.push_back(link);
    return sum;
  }
  const std::vector<LinkId>& links() const { return links_; }

 private:
  std::vector<double>& sums_;
  std::vector<LinkId> links_;
};

class NestedSearch::Model {
 public:
  Model(const Topology& topology, const Replicas& replicas, double bytes, CostBook& costs)
      : topology_(topology),
        replicas_(replicas),
        bytes_(bytes),
        costs_(costs),
        regions_(find_regions(topology, replicas)),
        models_(regions_.size()),
        loads_(topology.links().size(), 0),
        heaviest_(topology.links().size(), 0) {
    std::vector<Row> by_link(topology.links().size());
    std::vector<int> innermost(topology.links().size(), kNone);
    for (std::size_t r = 0; r < regions_.size(); ++r) {
      make_ways(static_cast<int>(r), by_link, innermost);
    }
    for (std::size_t link = 0; link < by_link.size(); ++link) {
      if (innermost[link] != kNone) {
        models_[index(innermost[link])].link_rows.push_back(std::move(by_link[link]));
      }
    }
    for (RegionModel& model : models_) {
      if (!model.coding_row.empty()) model.link_rows.push_back(model.coding_row);
      keep_distinct(model.link_rows);
      model.page = &book_.page(model.shape);
    }
    find_alike();
    open_rows_.resize(models_.size());  // no path is longer
    for (const Link& link : topology.links()) {
      has_latency_ |= link.latency.count() > 0;
    }
  }

  // Of cycles of `length` rounds; kNone: of any.
  std::optional<Found> best(double limit, int length) {
    if (regions_.front().parts() < 2) {
      return Found{{make_round({}, replicas_)}, 1};
    }
    const auto searched = [&](bool in_turn) {
      return length == kNone ? search(limit, in_turn) : search_length(length, limit, kUnreachable, in_turn);
    };
    std::optional<Candidate> interleaved = searched(false);
    if (!interleaved) return std::nullopt;
    Found found = realize(*interleaved);
    found.shards = static_cast<int>(found.rounds.size());
    if (has_latency_) {
      // Shards run side by side, so each iteration waits for the slowest round. Without them it pays each round in
      // turn.
      const std::optional<Candidate> candidate = searched(true);
      if (!candidate) return found;
      Found in_turn = realize(*candidate);
      const double now = costs_.cost_of(found.rounds, found.shards, bytes_).seconds_per_iteration;
      if (costs_.cost_of(in_turn.rounds, 1, bytes_).seconds_per_iteration < now) {
        return in_turn;
      }
    }
    return found;
  }

 private:
  // One way for a region to average: its parts as a whole (way 0), or along a digit of a grid (way 1 + index of the
  // grid).
  struct Way {
    std::vector<Division> axes;  // of replicas; one division per digit, just one for the whole
    double latency = 0;          // seconds
    double coding = 0;           // seconds, of the worker that codes most
  };

  // Seconds of a link's time that one average takes, for the averages of a region and of those above it, by depth and
  // way.
  struct Term {
    int depth;
    int way;
    double seconds;

    auto operator<=>(const Term&) const = default;
  };
  using Row = std::vector<Term>;

  struct Child {
    int region;        // one that stands for all alike
    double count = 1;  // how many there are
  };

  struct RegionModel {
    Shape shape;
    std::vector<Way> ways;
    std::vector<Row> link_rows;   // the links that this region's averages use and no inner region's
    Row coding_row;               // the time that a worker encodes and decodes, as if it were a link of its own
    std::vector<Row> clock_rows;  // the time of a worker's averages if they follow each other
    std::vector<Child> children;  // alike ones counted together
    std::vector<int> stand_in;    // for each child region: the one that stands for it
    CadencePage* page = nullptr;  // of its shape
  };

  // How often a region averages in a cycle: as a whole, and along the digits of a grid.
  struct AverageCounts {
    int wholes = 0;
    int grid = 0;
    int partials = 0;

    double times(int way) const { return way == 0 ? wholes : way == grid + 1 ? partials : 0; }
  };

  // A region's cadence and those of its kinds of children.
  struct Choice {
    const Cadence* cadence = nullptr;
    std::vector<Choice> children;
  };

  struct Candidate {
    int length = 1;
    Choice root;
    double busiest = 0;  // seconds of the busiest link's time per iteration
    double latency = 0;

    double seconds() const { return busiest + latency; }
  };

  // What one call of `choose_cadences` works under.
  struct Setting {
    int length = 1;
    double budget = 0;  // seconds of any link's time in a cycle
    bool in_turn = false;
    int* trials_left = nullptr;
  };

  void make_ways(int r, std::vector<Row>& by_link, std::vector<int>& innermost) {
    const Region& region = regions_[index(r)];
    RegionModel& model = models_[index(r)];
    const std::vector<std::vector<int>> parts = parts_of(region);
    model.shape.parts = static_cast<int>(parts.size());
    const auto workers_of = [&](const std::vector<int>& part) { return replicas_.ranks_of(part).size(); };
    const bool alike = std::all_of(parts.begin(), parts.end(), [&](const std::vector<int>& part) {
      return workers_of(part) == workers_of(parts.front());
    });
    if (alike) {
      model.shape.grids = grids_of(model.shape.parts);
    }
    model.ways.push_back({{Division{region.members}}, 0});
    for (const std::vector<int>& digits : model.shape.grids) {
      Way way;
      for (const Division& division : grid_rounds(digits)) {
        way.axes.push_back(union_of(division, parts));
      }
      model.ways.push_back(std::move(way));
    }
    Row clock = region.parent == kNone ? Row{} : models_[index(region.parent)].clock_rows.front();
    if (region.parent != kNone) model.coding_row = models_[index(region.parent)].coding_row;
    for (std::size_t way = 0; way < model.ways.size(); ++way) {
      const double seconds = measure(r, static_cast<int>(way), by_link, innermost);
      clock.push_back({region.depth, static_cast<int>(way), rounded(seconds)});
      const double coding = model.ways[way].coding;
      if (coding > 0) model.coding_row.push_back({region.depth, static_cast<int>(way), rounded(coding)});
    }
    model.clock_rows = {clock};
  }

  std::vector<std::vector<int>> parts_of(const Region& region) const {
    std::vector<std::vector<int>> parts;
    for (const int child : region.children) {
      parts.push_back(regions_[index(child)].members);
    }
    for (const int replica : region.loose) {
      parts.push_back({replica});
    }
    return parts;
  }

  // Enters the load of a way on each link (of its heaviest digit), and returns how long it takes.
  double measure(int r, int way_index, std::vector<Row>& by_link, std::vector<int>& innermost) {
    Way& way = models_[index(r)].ways[index(way_index)];
    const int depth = regions_[index(r)].depth;
    LinkSums heaviest(heaviest_);
    double duration = 0;
    for (const Division& division : way.axes) {
      LinkSums loads(loads_);
      double latency = 0;
      for (const std::vector<int>& members : division) {
        const Group group = replicas_.ranks_of(members);
        const GroupLoad& load = costs_.load_of(group, bytes_);
        latency = std::max(latency, load.latency.count());
        way.coding = std::max(way.coding, load.coding.count());
        duration = std::max(duration, load.duration(topology_).count());
        for (const auto& [link, bytes] : load.bytes) {
          if (bytes > 0) loads.at(link) += bytes / topology_.link(link).capacity.bytes_per_second;
        }
      }
      for (const LinkId link : loads.links()) {
        double& most = heaviest.at(link);
        most = std::max(most, loads.at(link));
        duration = std::max(duration, loads.at(link) + latency);
      }
      way.latency = std::max(way.latency, latency);
    }
    for (const LinkId link : heaviest.links()) {
      by_link[index(link)].push_back({depth, way_index, rounded(heaviest.at(link))});
      innermost[index(link)] = r;  // parents come first, so the last to write is the innermost
    }
    return duration;
  }

  static void keep_distinct(std::vector<Row>& rows) {
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }

  // Children with the same shape, loads and children of their own need their cadences to be chosen only once.
  void find_alike() {
    using Key = std::tuple<Shape, std::vector<Row>, std::vector<Row>, std::vector<std::pair<int, double>>>;
    std::map<Key, int> first_of;
    std::vector<int> kind(regions_.size());
    for (std::size_t r = regions_.size(); r-- > 0;) {
      RegionModel& model = models_[r];
      for (const int child : regions_[r].children) {
        const int stand_in = kind[index(child)];
        model.stand_in.push_back(stand_in);
        const auto same = std::find_if(model.children.begin(), model.children.end(),
                                       [&](const Child& other) { return other.region == stand_in; });
        if (same == model.children.end()) {
          model.children.push_back({stand_in, 1});
        } else {
          same->count += 1;
        }
      }
      std::vector<std::pair<int, double>> below;
      for (const Child& child : model.children) {
        below.emplace_back(child.region, child.count);
      }
      kind[r] = first_of.try_emplace({model.shape, model.link_rows, model.clock_rows, below}, static_cast<int>(r))
                    .first->second;
    }
  }

  // The cheapest candidate over all lengths.
  std::optional<Candidate> search(double limit, bool in_turn) {
    std::optional<Candidate> best;
    const int longest = limit > 0 ? kMaxCycle : 1;
    for (int length = 1; length <= longest; length += length < kEveryLength ? 1 : length < 2 * kEveryLength ? 2 : 4) {
      const double bound = best ? best->seconds() * kWorthwhile : kUnreachable;
      if (bound <= 0) {  // all workers on one host: nothing is faster than nothing
        break;
      }
      if (auto candidate = search_length(length, limit, bound, in_turn)) {
        best = std::move(candidate);
      }
    }
    return best;
  }

  // The cheapest candidate of one length that is faster than `bound`.
  std::optional<Candidate> search_length(int length, double limit, double bound, bool in_turn) {
    // What can't be reached is infinite, so the limit must not be.
    const double sum_limit =
        std::min((limit + kSearchTolerance) * topology_.workers(), std::numeric_limits<double>::max());
    std::optional<Candidate> best;
    double low = 0;
    double high = bound;
    double tau = bound;
    int trials_left = kMaxTrials;
    for (int step = 0; step < 40 && high - low > 1e-4 * low; ++step) {
      const Setting setting{length, tau * length * (1 + kSearchTolerance), in_turn, &trials_left};
      Candidate candidate;
      candidate.length = length;
      std::vector<AverageCounts> path;
      if (choose_cadences(0, 0, path, setting, sum_limit, candidate.root) <= sum_limit) {
        predict(candidate, in_turn);
        high = candidate.busiest;
        best = std::move(candidate);
      } else if (!best) {
        return std::nullopt;
      } else {
        low = tau;
      }
      tau = (low + high) / 2;
    }
    return best->seconds() < bound ? std::move(best) : std::nullopt;
  }

  // Chooses the cadences of a region and all below it for the least disagreement; infinite where it can't be below
  // `bound`. Out of trials, it makes do with what it has.
  double choose_cadences(int r, Slots inherited, std::vector<AverageCounts>& path, const Setting& setting, double bound,
                         Choice& choice) {
    const RegionModel& model = models_[index(r)];
    double least = kUnreachable;
    const std::vector<OpenRow>& rows = open_rows(setting.in_turn ? model.clock_rows : model.link_rows, path);
    path.emplace_back();
    for (const Cadence& cadence : model.page->cadences(setting.length, inherited)) {
      if (cadence.disagreement > bound || cadence.disagreement >= least || --*setting.trials_left < 0) {
        break;
      }
      path.back() = {std::popcount(cadence.whole), cadence.grid, std::popcount(cadence.partial())};
      if (!fits(rows, path.back(), setting)) {
        continue;
      }
      Choice trial{&cadence, std::vector<Choice>(model.children.size())};
      double sum = cadence.disagreement;
      const Slots averaged = inherited | cadence.whole | cadence.partial();
      for (std::size_t i = 0; i < model.children.size() && sum <= bound && sum < least; ++i) {
        const Child& child = model.children[i];
        const double room = (std::min(bound, least) - sum) / child.count;
        sum += child.count * choose_cadences(child.region, averaged, path, setting, room, trial.children[i]);
      }
      if (sum <= bound && sum < least) {
        least = sum;
        choice = std::move(trial);
      }
    }
    path.pop_back();
    return least;
  }

  // A row for the region at the end of a path: what those above it take, and the terms of its own, which come last.
  struct OpenRow {
    double taken;
    const Term* own;
    const Term* end;
  };

  const std::vector<OpenRow>& open_rows(const std::vector<Row>& rows, const std::vector<AverageCounts>& above) {
    std::vector<OpenRow>& open = open_rows_[above.size()];
    open.clear();
    for (const Row& row : rows) {
      const Term* own = row.data();
      const Term* const end = own + row.size();
      double taken = 0;
      for (; own != end && index(own->depth) < above.size(); ++own) {
        taken += above[index(own->depth)].times(own->way) * own->seconds;
      }
      open.push_back({taken, own, end});
    }
    return open;
  }

  static bool fits(const std::vector<OpenRow>& rows, const AverageCounts& counts, const Setting& setting) {
    return std::all_of(rows.begin(), rows.end(), [&](const OpenRow& row) {
      double sum = row.taken;
      for (const Term* term = row.own; term != row.end; ++term) {
        sum += counts.times(term->way) * term->seconds;
      }
      return sum <= setting.budget;
    });
  }

  static double time_of(const Row& row, const std::vector<AverageCounts>& path) {
    double sum = 0;
    for (const Term& term : row) {
      sum += path[index(term.depth)].times(term.way) * term.seconds;
    }
    return sum;
  }

  void predict(Candidate& candidate, bool in_turn) const {
    std::vector<AverageCounts> path;
    double latency = 0;
    candidate.busiest = busiest_of(0, candidate.root, in_turn, path, latency) / candidate.length;
    candidate.latency = in_turn ? 0 : latency;  // in turn, it is part of the time of each round
  }

  double busiest_of(int r, const Choice& choice, bool in_turn, std::vector<AverageCounts>& path,
                    double& latency) const {
    const RegionModel& model = models_[index(r)];
    path.push_back(
        {std::popcount(choice.cadence->whole), choice.cadence->grid, std::popcount(choice.cadence->partial())});
    for (std::size_t way = 0; way < model.ways.size(); ++way) {
      if (path.back().times(static_cast<int>(way)) > 0) {
        latency = std::max(latency, model.ways[way].latency);
      }
    }
    double busiest = 0;
    for (const Row& row : in_turn ? model.clock_rows : model.link_rows) {
      busiest = std::max(busiest, time_of(row, path));
    }
    for (std::size_t i = 0; i < model.children.size(); ++i) {
      busiest = std::max(busiest, busiest_of(model.children[i].region, choice.children[i], in_turn, path, latency));
    }
    path.pop_back();
    return busiest;
  }

  Found realize(const Candidate& candidate) const {
    Found found;
    for (int slot = 0; slot < candidate.length; ++slot) {
      RoundBuilder builder(replicas_);
      enter(0, candidate.root, slot, builder);
      found.rounds.push_back(builder.finish());
    }
    return found;
  }

  // Enters the groups of one slot for a region and all below it.
  void enter(int r, const Choice& choice, int slot, RoundBuilder& builder) const {
    const Region& region = regions_[index(r)];
    const RegionModel& model = models_[index(r)];
    const Cadence& cadence = *choice.cadence;
    if ((cadence.whole >> slot & 1U) != 0) {
      builder.add(model.ways[0].axes.front(), region.name);
      return;
    }
    for (std::size_t axis = 0; axis < cadence.axes.size(); ++axis) {
      if ((cadence.axes[axis] >> slot & 1U) != 0) {
        builder.add(model.ways[index(cadence.grid) + 1].axes[axis], region.name);
        return;
      }
    }
    for (std::size_t i = 0; i < region.children.size(); ++i) {
      const auto kind = std::find_if(model.children.begin(), model.children.end(),
                                     [&](const Child& child) { return child.region == model.stand_in[i]; });
      enter(region.children[i], choice.children[static_cast<std::size_t>(kind - model.children.begin())], slot,
            builder);
    }
  }

  const Topology& topology_;
  const Replicas& replicas_;
  const double bytes_;
  CostBook& costs_;
  const std::vector<Region> regions_;
  std::vector<RegionModel> models_;
  std::vector<double> loads_;  // while a way is measured
  std::vector<double> heaviest_;
  bool has_latency_ = false;
  CadenceBook book_;
  std::vector<std::vector<OpenRow>> open_rows_;  // by depth; while `choose_cadences` looks at a region
};

NestedSearch::NestedSearch(const Topology& topology, const Replicas& replicas, double bytes, CostBook& costs)
    : model_(std::make_unique<Model>(topology, replicas, bytes, costs)) {}
NestedSearch::~NestedSearch() = default;

Found NestedSearch::best(double disagreement) { return *model_->best(disagreement, kNone); }

std::optional<Found> NestedSearch::best_of_length(double disagreement, int length) {
  return model_->best(disagreement, length);
}

}  // namespace dssync
