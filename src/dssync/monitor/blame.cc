#include "dssync/monitor/blame.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "dssync/base/index.h"

namespace dssync {
namespace {

// A link must have become this much slower to explain anything.
constexpr double kLeastFold = 1.15;
// What was proven contradicts an implied capacity that is this much smaller.
constexpr double kProofMargin = 1.1;
// A stage speaks against a link if it took less than this part of the time that its share of the link would need.
constexpr double kFast = 0.5;
// Of links that explain the same stages, those are blamed that need not have changed much more than the others.
constexpr double kSimilarFold = 1.25;
// Others who send less than this part of a link's capacity explain nothing ...
constexpr double kNoticed = 0.1;
// ... and they explain what it lacks if they send this part of that at least: they were counted for a little longer.
constexpr double kMostOfIt = 0.6;

struct Suspect {
  LinkId link = kNone;
  double capacity = std::numeric_limits<double>::infinity();
  std::vector<int> stages;  // slow ones that it explains, ascending
  int against = 0;          // stages that were too fast for it
  bool taken = false;       // by others
};

class Explanation {
 public:
  Explanation(const StageTable& table, const std::vector<StageVerdict>& verdicts, const std::vector<LinkFacts>& links)
      : table_(table), verdicts_(verdicts), links_(links) {}

  std::vector<Blame> run() {
    find_suspects();
    std::vector<Blame> blames;
    while (true) {
      const std::vector<const Suspect*> best = most_telling();
      if (best.empty()) return blames;
      for (const Suspect* suspect : best) {
        blames.push_back(blame_of(*suspect));
        blames.back().alternatives = static_cast<int>(best.size()) - 1;
      }
      for (const int stage : best.front()->stages) explained_[index(stage)] = true;
    }
  }

 private:
  void find_suspects() {
    explained_.assign(verdicts_.size(), false);
    std::vector<Suspect> by_link(links_.size());
    for (std::size_t stage = 0; stage < verdicts_.size(); ++stage) {
      if (verdicts_[stage].slow) accuse(static_cast<int>(stage), by_link);
    }
    for (std::size_t link = 0; link < by_link.size(); ++link) {
      Suspect& suspect = by_link[link];
      if (suspect.stages.empty()) continue;
      suspect.link = static_cast<LinkId>(link);
      add_those_that_waited(suspect);
      suspect.against = count_against(suspect);
      suspect.taken = is_taken(links_[link], suspect.capacity);
      suspects_.push_back(std::move(suspect));
    }
  }

  void accuse(int stage, std::vector<Suspect>& by_link) const {
    const LinkLoads& loads = table_.at(stage).loads;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const std::size_t link = index(loads[i].first);
      const double implied = verdicts_[index(stage)].implied[i];
      if (implied * kLeastFold > links_[link].capacity || implied * kProofMargin < links_[link].proven) continue;
      by_link[link].stages.push_back(stage);
      by_link[link].capacity = std::min(by_link[link].capacity, implied);
    }
  }

  // A later phase of the same average gets its pieces late and in no common order, and looks slow, too.
  void add_those_that_waited(Suspect& suspect) const {
    const std::vector<int> direct = suspect.stages;
    for (std::size_t stage = 0; stage < verdicts_.size(); ++stage) {
      if (!verdicts_[stage].slow) continue;
      const TableStage& later = table_.stages()[stage];
      const bool waited = std::any_of(direct.begin(), direct.end(), [&](int cause) {
        return is_same_chain(table_.at(cause), later) && table_.at(cause).phase < later.phase;
      });
      if (waited) suspect.stages.push_back(static_cast<int>(stage));
    }
    std::sort(suspect.stages.begin(), suspect.stages.end());
    suspect.stages.erase(std::unique(suspect.stages.begin(), suspect.stages.end()), suspect.stages.end());
  }

  int count_against(const Suspect& suspect) const {
    int count = 0;
    for (std::size_t stage = 0; stage < verdicts_.size(); ++stage) {
      const StageVerdict& verdict = verdicts_[stage];
      if (!verdict.seen || verdict.slow) continue;
      const double load = load_on(suspect.link, static_cast<int>(stage), *verdict.latest);
      if (load <= 0) continue;
      // Where samples were lost, most of its iterations may have been before anything became slow, but not the last.
      const double seconds = std::max(verdict.seconds, verdict.latest->stages[stage].seconds);
      if (seconds < kFast * shared_bytes(suspect.link, load, *verdict.latest) / suspect.capacity) ++count;
    }
    return count;
  }

  double load_on(LinkId link, int stage, const IterationView& view) const {
    for (const auto& [other, load] : table_.at(stage).loads) {
      if (other == link) return load * view.volumes[index(table_.at(stage).round)];
    }
    return 0;
  }

  // What goes through a link until a stage with this load is done, if all stages get the same rate.
  double shared_bytes(LinkId link, double load, const IterationView& view) const {
    double bytes = 0;
    for (int stage = 0; stage < table_.size(); ++stage) bytes += std::min(load, load_on(link, stage, view));
    return bytes;
  }

  std::vector<int> open_stages(const Suspect& suspect) const {
    std::vector<int> open;
    for (const int stage : suspect.stages) {
      if (!explained_[index(stage)]) open.push_back(stage);
    }
    return open;
  }

  double fold(const Suspect& suspect) const { return links_[index(suspect.link)].capacity / suspect.capacity; }

  // The suspects that explain most of what is not explained yet, those first that others were seen to use: several
  // where nothing tells them apart.
  std::vector<const Suspect*> most_telling() const {
    std::pair<int, bool> most{0, false};
    std::vector<const Suspect*> best;
    std::vector<int> covered;
    for (const Suspect& suspect : suspects_) {
      const std::vector<int> open = open_stages(suspect);
      const std::pair<int, bool> score{static_cast<int>(open.size()) - suspect.against, suspect.taken};
      if (open.empty() || score < most || score.first <= 0) continue;
      if (score > most || (open != covered && fold(suspect) * kSimilarFold < fold(*best.front()))) {
        best.clear();
        covered = open;
        most = score;
      }
      if (open == covered) best.push_back(&suspect);
    }
    return least_changed(best);
  }

  std::vector<const Suspect*> least_changed(const std::vector<const Suspect*>& suspects) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Suspect* suspect : suspects) least = std::min(least, fold(*suspect));
    std::vector<const Suspect*> result;
    for (const Suspect* suspect : suspects) {
      if (fold(*suspect) <= least * kSimilarFold) result.push_back(suspect);
    }
    return result;
  }

  Blame blame_of(const Suspect& suspect) const {
    Blame blame{suspect.link, suspect.capacity, static_cast<int>(suspect.stages.size()), 1, 0, suspect.taken};
    for (const int stage : suspect.stages) blame.excess = std::max(blame.excess, verdicts_[index(stage)].excess);
    return blame;
  }

  const StageTable& table_;
  const std::vector<StageVerdict>& verdicts_;
  const std::vector<LinkFacts>& links_;
  std::vector<Suspect> suspects_;
  std::vector<bool> explained_;  // by stage
};

}  // namespace

bool is_taken(const LinkFacts& link, double capacity) {
  return link.others >= kNoticed * link.nominal && link.others >= kMostOfIt * (link.nominal - capacity);
}

std::vector<Blame> explain_slow_stages(const StageTable& table, const std::vector<StageVerdict>& verdicts,
                                       const std::vector<LinkFacts>& links) {
  return Explanation(table, verdicts, links).run();
}

}  // namespace dssync
