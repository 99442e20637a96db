// How the result of an average becomes part of the live values: one rule for each way. What is averaged and when is not
// its business. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dssync/sync/tensor_set.h"

namespace dssync {

class TakeOver {
 public:
  virtual ~TakeOver() = default;

  // What the engine averages: flat tensors like the live ones.
  virtual const std::vector<Flat>& averaged() const = 0;

  // Before the average of these slices starts.
  virtual void prepare(const std::vector<FlatSlice>& slices) = 0;

  // After it is done, and before apply(): what was averaged, as it was and as it is now. Nothing for the rule that
  // works on the live tensors themselves.
  struct Move {
    at::Tensor before;
    at::Tensor after;
  };
  virtual std::optional<Move> move_of(const FlatSlice& slice) const = 0;

  // After it is done. REQUIRES: prepared with the same slices.
  virtual void apply(const std::vector<FlatSlice>& slices) = 0;
};

// The average takes the place of the values: it works on the live tensors themselves.
std::unique_ptr<TakeOver> replace_by_average(const std::vector<Flat>& live);

// Likewise, but a copy is averaged: until the result takes their place, the live values can be read, and where the
// average fails they are as they were.
std::unique_ptr<TakeOver> replace_when_done(const std::vector<Flat>& live);

// The live values go on changing while a copy of them is averaged; what the average changed about the copy is added to
// them (adapt-while-combine). `never_negative`: squares, of which others may have taken more away than a step has left
// here, are kept at 0 or above.
std::unique_ptr<TakeOver> add_correction(const std::vector<Flat>& live, bool never_negative);

}  // namespace dssync
