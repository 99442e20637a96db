// How an average of slices is cut into pieces, and whether small slices travel as one. Pure functions of plain numbers,
// the same on every worker; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dssync/base/units.h"

namespace dssync {

// What the cutting has to know of a chain.
struct ChainShape {
  std::size_t phases = 1;
  double seconds_per_byte = 0;  // that the busiest link needs for all phases together
  double wire_share = 1;        // bytes on the wire for each of a vector, at most
};

// The elements [begin, end) of a slice.
struct Piece {
  std::size_t slice = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const Piece&) const = default;
};

struct Cutting {
  bool is_joined = false;     // all slices travel as one, one after the other: the pieces are of this slice 0
  std::vector<Piece> pieces;  // ascending, none empty; together all elements

  bool operator==(const Cutting&) const = default;
};

// `elements`: of each slice. `together` is what the network needs for all averages that are started with this one:
// pieces are as few as will do.
// - Many small slices are joined: each message has its fixed costs.
// - Phases of a chain overlap if there are several pieces. Pieces are short enough that filling and draining this
//   pipeline takes little of the time that everything takes together, but each of them is worth its fixed costs. The
//   first and the last one are shorter.
// - A chain of one phase gets every slice in one piece: an all-reduce passes on many short messages as it is.
Cutting cut_into_pieces(const std::vector<std::int64_t>& elements, std::int64_t bytes_per_element,
                        const ChainShape& chain, Seconds together);

}  // namespace dssync
