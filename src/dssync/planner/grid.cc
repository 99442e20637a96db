// Mixed-radix and nested uneven grids.
#include "dssync/planner/grid.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dssync {
namespace {

// Appends the factors of n, ascending, at least `least` and at most g, to `digits` if that makes a shorter list than
// `best`.
void factorize(int n, int least, int g, std::vector<int>& digits, std::vector<int>& best) {
  if (!best.empty() && digits.size() >= best.size()) {
    return;
  }
  if (n == 1) {
    best = digits;
    return;
  }
  for (int factor = std::min(g, n); factor >= least; --factor) {
    if (n % factor == 0 && (n == factor || n / factor >= factor)) {
      digits.push_back(factor);
      factorize(n / factor, factor, g, digits, best);
      digits.pop_back();
    }
  }
}

bool is_smooth(int n, int g) {
  for (int factor = 2; factor <= g && n > 1; ++factor) {
    while (n % factor == 0) {
      n /= factor;
    }
  }
  return n == 1;
}

// How many blocks the uneven grid cuts n > g things into.
int block_count(int n, int g) {
  const int smallest = (n + g - 1) / g;
  return g == 2 ? 2 : std::min(g, n / smallest);
}

// Rounds of the blocks side by side, so that all end together and are ready for the deal; a block with fewer rounds
// goes round its own more often.
std::vector<Division> side_by_side(const std::vector<int>& starts, const std::vector<std::vector<Division>>& blocks) {
  std::size_t length = 0;
  for (const auto& rounds : blocks) {
    length = std::max(length, rounds.size());
  }
  std::vector<Division> merged(length);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::size_t own = blocks[b].size();
    for (std::size_t back = 1; back <= length && own > 0; ++back) {
      for (std::vector<int> group : blocks[b][own - 1 - (back - 1) % own]) {
        for (int& thing : group) {
          thing += starts[b];
        }
        merged[length - back].push_back(std::move(group));
      }
    }
  }
  return merged;
}

Division deal(int n, int hands) {
  Division division(static_cast<std::size_t>(hands));
  for (int thing = 0; thing < n; ++thing) {
    division[static_cast<std::size_t>(thing % hands)].push_back(thing);
  }
  return division;
}

std::vector<Division> uneven_rounds(int n, int g) {
  const int blocks = block_count(n, g);
  std::vector<int> starts;
  std::vector<std::vector<Division>> inner;
  for (int b = 0; b < blocks; ++b) {
    // The larger blocks come first.
    const int start = b * (n / blocks) + std::min(b, n % blocks);
    const int size = n / blocks + (b < n % blocks ? 1 : 0);
    starts.push_back(start);
    inner.push_back(mixing_rounds(size, g));
  }
  std::vector<Division> rounds = side_by_side(starts, inner);
  rounds.push_back(deal(n, (n + g - 1) / g));
  return rounds;
}

}  // namespace

std::vector<int> grid_digits(int n, int g) {
  std::vector<int> digits;
  std::vector<int> best;
  if (n > 1 && is_smooth(n, g)) {
    factorize(n, 2, g, digits, best);
  }
  return best;
}

std::vector<Division> grid_rounds(const std::vector<int>& digits) {
  int n = 1;
  for (const int digit : digits) {
    n *= digit;
  }
  std::vector<Division> rounds;
  int stride = 1;
  for (const int digit : digits) {
    Division division;
    for (int thing = 0; thing < n; ++thing) {
      if (thing / stride % digit == 0) {
        std::vector<int> group;
        for (int k = 0; k < digit; ++k) {
          group.push_back(thing + k * stride);
        }
        division.push_back(std::move(group));
      }
    }
    rounds.push_back(std::move(division));
    stride *= digit;
  }
  return rounds;
}

std::vector<Division> mixing_rounds(int n, int g) {
  if (n == 1) {
    return {};
  }
  if (is_smooth(n, g)) {
    return grid_rounds(grid_digits(n, g));
  }
  return uneven_rounds(n, g);
}

}  // namespace dssync
