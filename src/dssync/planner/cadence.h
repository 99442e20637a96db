// When one region averages within a cycle, and how much disagreement between its parts that leaves. docs/planner.md has
// the arithmetic. Not thread-safe: the book remembers.
//
// A cycle of up to 64 rounds is a bit mask. In a round a region's parts may be averaged as a whole, along one axis of a
// grid of its parts, or not at all. A round in which a larger region is averaged averages this one, too: those come as
// `inherited`.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dssync {

using Slots = std::uint64_t;
inline constexpr int kMaxCycle = 64;

// The mean over a cycle of `length` rounds of the number of rounds since the last one in `slots`; infinite without any.
double mean_age(Slots slots, int length);

// `count` slots beside the taken ones such that the gaps are as even as possible.
// REQUIRES: 0 <= count <= number of free slots.
Slots spread(Slots taken, int count, int length);

// What a region can do: average its parts as a whole, or along one digit of a grid, for each way to write parts as
// digits.
struct Shape {
  int parts = 2;
  std::vector<std::vector<int>> grids;  // the digits of each grid; their product is `parts`

  auto operator<=>(const Shape&) const = default;
};

struct Cadence {
  Slots whole = 0;
  int grid = 0;             // index into Shape::grids; only of meaning where `axes` is not empty
  std::vector<Slots> axes;  // when each digit of the grid is averaged
  double disagreement =
      0;  // sum over the components between the parts of their mean age; divide by N for the share in S

  Slots partial() const;
};

// The cadences of one shape.
class CadencePage {
 public:
  explicit CadencePage(Shape shape) : shape_(std::move(shape)) {}

  // All ways worth trying, least disagreement first. The reference stays valid as long as the page.
  const std::vector<Cadence>& cadences(int length, Slots inherited);

 private:
  const Shape shape_;
  std::array<std::unordered_map<Slots, std::vector<Cadence>>, kMaxCycle + 1> known_;  // by length
};

class CadenceBook {
 public:
  // The reference stays valid as long as the book.
  CadencePage& page(const Shape& shape) { return pages_.try_emplace(shape, shape).first->second; }

 private:
  std::map<Shape, CadencePage> pages_;
};

}  // namespace dssync
