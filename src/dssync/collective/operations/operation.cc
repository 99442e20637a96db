#include "dssync/collective/operations/operation.h"

#include <algorithm>
#include <cmath>
#include <new>

#include <ATen/ATen.h>

#include "dssync/codec/encoding.h"
#include "dssync/collective/operations/coded.h"
#include "dssync/planner/traffic.h"

namespace dssync {

at::Tensor SlicedVector::range() const { return vector.narrow(0, bounds.front(), bounds.back() - bounds.front()); }

at::Tensor SlicedVector::own_slice() const { return vector.narrow(0, bounds[own], own_size()); }

std::vector<std::int64_t> SlicedVector::sizes() const {
  std::vector<std::int64_t> sizes;
  for (std::size_t index = 0; index + 1 < bounds.size(); ++index) sizes.push_back(bounds[index + 1] - bounds[index]);
  return sizes;
}

SlicedVector slice_for(const Step& step, const at::Tensor& vector, std::int64_t unit) {
  SlicedVector slices{vector, {}, 0};
  const std::int64_t all = vector.numel();
  for (const double bound : step.bounds) {
    const double elements = bound * static_cast<double>(all);
    const std::int64_t rounded = std::llround(elements / static_cast<double>(unit)) * unit;
    // The last unit may be shorter, and belongs to the slice that ends with the vector.
    slices.bounds.push_back(std::llround(elements) == all ? all : std::min(rounded, all / unit * unit));
  }
  if (step.kind != Stage::Kind::kAllReduce) slices.own = static_cast<std::size_t>(step.index);
  return slices;
}

std::int64_t bytes_sent(const Step& step, const SlicedVector& slices, Codec codec) {
  return encoded_sent_bytes(step.kind, codec, step.members.size(), slices.bounds, static_cast<std::size_t>(step.index),
                            static_cast<std::int64_t>(slices.vector.element_size()));
}

std::unique_ptr<Operation> make_operation(const Step& step, SlicedVector slices, Coding coding) {
  switch (step.kind) {
    case Stage::Kind::kReduceScatter:
      return make_reduce_scatter(std::move(slices), std::move(coding));
    case Stage::Kind::kAllReduce:
      return make_all_reduce(step, std::move(slices), std::move(coding));
    case Stage::Kind::kAllGather:
      return make_all_gather(std::move(slices));
  }
  return nullptr;
}

void encode_slice(const Coding& coding, const SlicedVector& slices, std::size_t part, std::int64_t begin,
                  std::int64_t end, const at::Tensor& message) {
  const at::Tensor values = slices.vector.narrow(0, begin, end - begin);
  encode(coding.codec, values, mix_seeds(coding.seed, part), message);
  if (!coding.lost.defined()) return;
  const at::Tensor arrived = at::empty_like(values);
  decode(coding.codec, message, arrived);
  coding.lost.narrow(0, begin, end - begin).add_(values - arrived);
}

void rethrow_from_channel() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::logic_error&) {  // such as std::invalid_argument: a wrong call
    throw;
  } catch (const std::exception& error) {
    throw ChannelFailure(error.what());
  }
}

}  // namespace dssync
