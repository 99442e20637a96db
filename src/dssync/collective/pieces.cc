#include "dssync/collective/pieces.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dssync/collective/tuning.h"
#include "dssync/planner/cost.h"

namespace dssync {
namespace {

using std::int64_t;

// Of slices that are cut or not, in elements, and what an element takes.
struct Slices {
  std::vector<int64_t> elements;
  double bytes_per_element = 0;

  double bytes() const {
    return static_cast<double>(std::accumulate(elements.begin(), elements.end(), int64_t{0})) * bytes_per_element;
  }
};

bool are_small(const Slices& slices, const ChainShape& chain) {
  const auto count = static_cast<double>(slices.elements.size());
  return slices.elements.size() > 1 &&
         slices.bytes() * chain.wire_share < static_cast<double>(tuning::kWorthwhileBytes) * count;
}

// `bytes` on the wire.
double pieces_of_a_pipeline(double bytes, double seconds, Seconds together) {
  const double piece = std::max(tuning::kShortestPieceTime.count(), together.count() / kPiecesPerIteration);
  return std::max(1.0, std::round(std::min(seconds / piece, bytes / tuning::kShortestPieceBytes)));
}

double bytes_of_a_piece(const Slices& slices, const ChainShape& chain, Seconds together) {
  const double bytes = slices.bytes();
  if (chain.phases == 1) return bytes;
  return bytes / pieces_of_a_pipeline(bytes * chain.wire_share, bytes * chain.seconds_per_byte, together);
}

// Where to cut a slice: in equal pieces of about `piece` elements.
std::vector<int64_t> equal_cuts(int64_t elements, double piece) {
  const int64_t pieces = std::max<int64_t>(1, std::llround(static_cast<double>(elements) / piece));
  std::vector<int64_t> bounds;
  for (int64_t number = 0; number <= pieces; ++number) bounds.push_back(elements * number / pieces);
  return bounds;
}

void shorten_first(std::vector<int64_t>& bounds) { bounds.insert(bounds.begin() + 1, bounds[1] / tuning::kShortEnds); }

void shorten_last(std::vector<int64_t>& bounds) {
  const int64_t last = bounds.back() - *(bounds.end() - 2);
  bounds.insert(bounds.end() - 1, bounds.back() - last / tuning::kShortEnds);
}

std::vector<Piece> pieces_of(const Slices& slices, const ChainShape& chain, Seconds together) {
  const double bytes = std::max(slices.bytes_per_element, bytes_of_a_piece(slices, chain, together));
  const bool has_short_ends = chain.phases > 1 &&
                              bytes * chain.wire_share >= tuning::kShortEnds * tuning::kShortestPieceBytes &&
                              slices.bytes() >= 4 * bytes;
  std::vector<Piece> pieces;
  for (std::size_t slice = 0; slice < slices.elements.size(); ++slice) {
    std::vector<int64_t> bounds = equal_cuts(slices.elements[slice], bytes / slices.bytes_per_element);
    if (has_short_ends && slice == 0) shorten_first(bounds);
    if (has_short_ends && slice + 1 == slices.elements.size()) shorten_last(bounds);
    for (std::size_t number = 0; number + 1 < bounds.size(); ++number) {
      if (bounds[number] < bounds[number + 1]) pieces.push_back({slice, bounds[number], bounds[number + 1]});
    }
  }
  return pieces;
}

}  // namespace

Cutting cut_into_pieces(const std::vector<int64_t>& elements, int64_t bytes_per_element, const ChainShape& chain,
                        Seconds together) {
  if (elements.empty()) return {};
  Slices slices{elements, static_cast<double>(bytes_per_element)};
  const bool is_joined = are_small(slices, chain);
  if (is_joined) slices.elements = {std::accumulate(elements.begin(), elements.end(), int64_t{0})};
  return {is_joined, pieces_of(slices, chain, together)};
}

}  // namespace dssync
