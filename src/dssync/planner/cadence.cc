// When one region averages within a cycle.
#include "dssync/planner/cadence.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace dssync {
namespace {

// Up to this length the slots of grid rounds are improved by exchanging them; beyond it an even spread is good enough.
constexpr int kPolishedLength = 8;
// Beyond this length grids are left out, and the numbers of whole averages to try get sparser as they grow. A long
// cycle only pays where averages are rare.
constexpr int kDetailedLength = 16;

Slots bit(int slot) { return Slots{1} << slot; }

// Rounds since the last average, summed over a gap of `gap` rounds that ends with one: 0 + 1 + ... + (gap - 1).
int gap_cost(int gap) { return gap * (gap - 1) / 2; }

// The same for a gap that is split evenly by `extra` more averages.
int split_cost(int gap, int extra) {
  const int pieces = extra + 1;
  const int longer = gap % pieces;
  return longer * gap_cost(gap / pieces + 1) + (pieces - longer) * gap_cost(gap / pieces);
}

// Adds slots beside the taken ones, one by one, each where it evens out the gaps most.
class Spreader {
 public:
  Spreader(Slots taken, int length) : length_(length) {
    int last = 63 - std::countl_zero(taken) - length;
    for (Slots left = taken; left != 0; left &= left - 1) {
      const int slot = std::countr_zero(left);
      gaps_[gap_count_] = {last, slot - last};
      worths_[gap_count_] = gaps_[gap_count_].worth();
      ++gap_count_;
      last = slot;
    }
  }

  void add() {
    ++count_;
    if (gap_count_ == 0) {
      return;
    }
    const auto widest = static_cast<std::size_t>(
        std::max_element(worths_.begin(), worths_.begin() + static_cast<std::ptrdiff_t>(gap_count_)) - worths_.begin());
    Gap& gap = gaps_[widest];
    ++gap.extra;
    worths_[widest] = gap.worth();
    added_ &= ~gap.added;
    gap.added = 0;
    for (int i = 1; i <= gap.extra; ++i) {
      const int slot = gap.start + i * gap.length / (gap.extra + 1);
      gap.added |= bit(slot < 0 ? slot + length_ : slot);
    }
    added_ |= gap.added;
  }

  // All slots that were added.
  Slots added() const {
    if (gap_count_ > 0) {
      return added_;
    }
    Slots even = 0;
    for (int i = 0; i < count_; ++i) {
      even |= bit(i * length_ / count_);
    }
    return even;
  }

 private:
  // Between two taken slots around the cycle. The first gap starts before the cycle does.
  struct Gap {
    int start = 0;  // a taken slot
    int length = 0;
    int extra = 0;
    Slots added = 0;

    // What one more slot gains; a gap with a free slot comes before one without.
    int worth() const {
      const int gain = split_cost(length, extra) - split_cost(length, extra + 1);
      return extra + 1 < length ? kFree + gain : gain;
    }
  };
  static constexpr int kFree = 1 << 20;  // more than any gain

  const int length_;
  int count_ = 0;
  Slots added_ = 0;
  std::size_t gap_count_ = 0;
  std::array<Gap, kMaxCycle> gaps_;
  std::array<int, kMaxCycle> worths_;  // of the gaps
};

// The components of a grid: each non-empty set of digits, with its number of degrees of freedom.
struct Component {
  unsigned digits;
  double freedom;
};

std::vector<Component> components_of(const std::vector<int>& digits) {
  std::vector<Component> components;
  for (unsigned set = 1; set < (1U << digits.size()); ++set) {
    double freedom = 1;
    for (std::size_t a = 0; a < digits.size(); ++a) {
      freedom *= (set >> a & 1U) != 0 ? digits[a] - 1 : 1;
    }
    components.push_back({set, freedom});
  }
  return components;
}

double grid_disagreement(const std::vector<Component>& components, Slots full, const std::vector<Slots>& axes,
                         int length) {
  double sum = 0;
  for (const Component& component : components) {
    Slots slots = full;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      slots |= (component.digits >> a & 1U) != 0 ? axes[a] : 0;
    }
    sum += component.freedom * mean_age(slots, length);
  }
  return sum;
}

// Finds good slots for whole and for grid averages.
class GridFitter {
 public:
  GridFitter(const std::vector<int>& digits, int length, Slots inherited)
      : digits_(digits), components_(components_of(digits)), length_(length), inherited_(inherited) {}

  // Appends a cadence for every number of whole and of grid averages that the cycle has room for.
  void fit_all(std::vector<Cadence>& cadences) const {
    const int free = length_ - std::popcount(inherited_);
    Spreader wholes(inherited_, length_);
    for (int whole_count = 0; whole_count <= free; ++whole_count, wholes.add()) {
      const Slots whole = wholes.added();
      Spreader partials(inherited_ | whole, length_);
      for (int partial_count = 1; partial_count <= free - whole_count; ++partial_count) {
        partials.add();
        cadences.push_back(fit(whole, partials.added()));
      }
    }
  }

 private:
  // The digits take turns.
  Cadence fit(Slots whole, Slots partial) const {
    Cadence cadence;
    cadence.whole = whole;
    cadence.axes.assign(digits_.size(), 0);
    std::size_t turn = 0;
    for (Slots left = partial; left != 0; left &= left - 1) {
      cadence.axes[turn] |= left & -left;
      turn = turn + 1 < digits_.size() ? turn + 1 : 0;
    }
    cadence.disagreement = cost(cadence);
    if (length_ <= kPolishedLength) {
      polish(cadence);
    }
    return cadence;
  }

  double cost(const Cadence& cadence) const {
    return grid_disagreement(components_, inherited_ | cadence.whole, cadence.axes, length_);
  }

  // Exchanges the contents of two slots as long as that helps.
  void polish(Cadence& cadence) const {
    for (bool improved = true; improved;) {
      improved = false;
      for (int a = 0; a < length_; ++a) {
        for (int b = 0; b < a; ++b) {
          if (((inherited_ >> a | inherited_ >> b) & 1U) == 0) {
            improved |= exchange(cadence, a, b);
          }
        }
      }
    }
  }

  bool exchange(Cadence& cadence, int a, int b) const {
    Cadence other = cadence;
    bool differ = false;
    const auto swap_bits = [&](Slots& slots) {
      if ((slots >> a & 1U) != (slots >> b & 1U)) {
        slots ^= bit(a) | bit(b);
        differ = true;
      }
    };
    swap_bits(other.whole);
    std::for_each(other.axes.begin(), other.axes.end(), swap_bits);
    if (!differ) {
      return false;
    }
    other.disagreement = cost(other);
    if (other.disagreement >= cadence.disagreement - 1e-12) {
      return false;
    }
    cadence = std::move(other);
    return true;
  }

  const std::vector<int>& digits_;
  const std::vector<Component> components_;
  const int length_;
  const Slots inherited_;
};

// The number of whole averages to try after `wholes`.
int next_number(int wholes, int length) { return wholes + (length <= kDetailedLength ? 1 : 1 + wholes / 5); }

Slots rotated(Slots slots, int by, int length) {
  const Slots mask = length == kMaxCycle ? ~Slots{0} : bit(length) - 1;
  return by == 0 ? slots : (slots << by | slots >> (length - by)) & mask;
}

// Where whole averages may stand: evenly spread. The outermost region of a short cycle tries all ways (up to rotation),
// for uneven gaps may suit the regions inside better.
std::vector<Slots> whole_slots(int length, Slots inherited) {
  std::vector<Slots> ways;
  if (inherited == 0 && length <= kPolishedLength) {
    for (Slots slots = 1; slots < bit(length); ++slots) {
      bool is_first = true;
      for (int by = 1; by < length; ++by) {
        is_first = is_first && slots <= rotated(slots, by, length);
      }
      if (is_first) {
        ways.push_back(slots);
      }
    }
    return ways;
  }
  const int free = length - std::popcount(inherited);
  Spreader spreader(inherited, length);
  for (int wholes = 0, next = 0; wholes <= free; ++wholes, spreader.add()) {
    if (wholes == next || wholes == free) {
      ways.push_back(spreader.added());
      next = next_number(wholes, length);
    }
  }
  return ways;
}

std::vector<Cadence> make_cadences(const Shape& shape, int length, Slots inherited) {
  std::vector<Cadence> cadences;
  for (const Slots whole : whole_slots(length, inherited)) {
    Cadence cadence;
    cadence.whole = whole;
    cadence.disagreement = (shape.parts - 1) * mean_age(inherited | whole, length);
    cadences.push_back(std::move(cadence));
  }
  for (std::size_t grid = 0; length <= kDetailedLength && grid < shape.grids.size(); ++grid) {
    const std::size_t first = cadences.size();
    GridFitter(shape.grids[grid], length, inherited).fit_all(cadences);
    for (std::size_t i = first; i < cadences.size(); ++i) {
      cadences[i].grid = static_cast<int>(grid);
    }
  }
  std::erase_if(cadences, [](const Cadence& cadence) { return !std::isfinite(cadence.disagreement); });
  std::stable_sort(cadences.begin(), cadences.end(),
                   [](const Cadence& a, const Cadence& b) { return a.disagreement < b.disagreement; });
  return cadences;
}

}  // namespace

double mean_age(Slots slots, int length) {
  if (slots == 0) {
    return std::numeric_limits<double>::infinity();
  }
  int sum = 0;
  int last = 63 - std::countl_zero(slots) - length;
  for (Slots left = slots; left != 0; left &= left - 1) {
    const int slot = std::countr_zero(left);
    sum += gap_cost(slot - last);
    last = slot;
  }
  return static_cast<double>(sum) / length;
}

Slots spread(Slots taken, int count, int length) {
  Spreader spreader(taken, length);
  for (int i = 0; i < count; ++i) {
    spreader.add();
  }
  return spreader.added();
}

Slots Cadence::partial() const {
  return std::accumulate(axes.begin(), axes.end(), Slots{0}, [](Slots a, Slots b) { return a | b; });
}

const std::vector<Cadence>& CadencePage::cadences(int length, Slots inherited) {
  const auto [entry, is_new] = known_[static_cast<std::size_t>(length)].try_emplace(inherited);
  if (is_new) {
    entry->second = make_cadences(shape_, length, inherited);
  }
  return entry->second;
}

}  // namespace dssync
