// One step of one average as this worker carries it out: what it sends, and what it does with what comes in. A file per
// collective. Driven by one thread at a time; the messages move in c10d's threads between start() and finish().
//
// Where a codec makes other bytes of the numbers, reductions send an encoded copy, decode and add. What they lead to is
// encoded once, and handed out as it is (coded_result.h). An all-reduce of three and more leaves the adding to c10d, so
// it has no codec (all_reduce.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/collective/program/chain.h"
#include "dssync/comm/c10d/c10d.h"

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

// How the values of a reduction travel.
struct Coding {
  Codec codec = Codec::kFloat32;  // of vectors of other types always this
  std::uint64_t seed = 0;         // of the rounding; differs from that of any other operation
  // Error feedback: like the vector. What encoding takes away from what this worker sends is added to it. Undefined:
  // nobody wants to know.
  at::Tensor lost{};
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

// Fractions that mean the same place are the same number on every worker, so all round alike: to multiples of `unit`
// elements.
SlicedVector slice_for(const Step& step, const at::Tensor& vector, std::int64_t unit = 1);

// That this worker sends.
std::int64_t bytes_sent(const Step& step, const SlicedVector& slices, Codec codec);

std::unique_ptr<Operation> make_operation(const Step& step, SlicedVector slices, Coding coding);

// One for each collective; `step` is of that kind.
std::unique_ptr<Operation> make_reduce_scatter(SlicedVector slices, Coding coding);
std::unique_ptr<Operation> make_all_reduce(const Step& step, SlicedVector slices, Coding coding);
std::unique_ptr<Operation> make_all_gather(SlicedVector slices);

// Encodes elements [begin, end) of the vector into `message`, and notes what that loses. `part` tells the messages of
// one operation apart.
void encode_slice(const Coding& coding, const SlicedVector& slices, std::size_t part, std::int64_t begin,
                  std::int64_t end, const at::Tensor& message);

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
