// One step of one average as this worker carries it out: what it sends, and what it does with what comes in. A file per
// collective. Driven by one thread at a time; the messages move in c10d's threads between start() and finish().
//
// Whatever makes other bytes of the numbers on the wire has its place here: start() sends an encoded copy, finish()
// decodes and adds. An all-reduce of three and more leaves the adding to c10d, so it cannot (all_reduce.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/collective/chain.h"
#include "dssync/comm/c10d.h"

namespace dssync {

// A channel, or a worker at its other end, failed. Everything else that an operation throws (out of memory, a wrong
// argument) is this worker's own failure.
class ChannelFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The part of a vector that a step is about, in elements: slice i is [bounds[i], bounds[i + 1]).
struct SlicedVector {
  at::Tensor vector;                 // of the whole average
  std::vector<std::int64_t> bounds;  // ascending
  std::size_t own = 0;               // slice of this worker

  bool empty() const { return bounds.front() == bounds.back(); }
  at::Tensor range() const;
  at::Tensor own_slice() const;
  std::int64_t own_size() const { return bounds[own + 1] - bounds[own]; }
  std::vector<std::int64_t> sizes() const;
};

class Operation {
 public:
  explicit Operation(SlicedVector slices) : slices_(std::move(slices)) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Sends. The operation, and with it all that messages are read from and written to, must live until the work has
  // ended. Throws ChannelFailure, or what failed at this worker; then nothing is under way.
  virtual Work start(ChannelType& channel) = 0;

  // What is left to do after the messages. `divisor`: of sums that are complete with this operation, otherwise 1.
  virtual void finish(int divisor) = 0;

 protected:
  const SlicedVector& slices() const { return slices_; }

 private:
  SlicedVector slices_;
};

// Fractions that mean the same place are the same number on every worker, so all round alike.
SlicedVector slice_for(const Step& step, const at::Tensor& vector);

// That this worker sends.
std::int64_t bytes_sent(const Step& step, const SlicedVector& slices);

std::unique_ptr<Operation> make_operation(const Step& step, SlicedVector slices);

// One for each collective; `step` is of that kind.
std::unique_ptr<Operation> make_reduce_scatter(SlicedVector slices);
std::unique_ptr<Operation> make_all_reduce(const Step& step, SlicedVector slices);
std::unique_ptr<Operation> make_all_gather(SlicedVector slices);

// For a handler of exceptions around a call of c10d: throws what is handled as a ChannelFailure, unless it says that
// this worker is at fault.
[[noreturn]] void rethrow_from_channel();

// Makes a call of c10d. What it throws comes out of rethrow_from_channel().
template <typename Call>
auto in_channel(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (...) {
    rethrow_from_channel();
  }
}

}  // namespace dssync
