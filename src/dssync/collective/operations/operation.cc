#include "dssync/collective/operations/operation.h"

#include <cmath>
#include <new>

#include <ATen/ATen.h>

namespace dssync {

at::Tensor SlicedVector::range() const { return vector.narrow(0, bounds.front(), bounds.back() - bounds.front()); }

at::Tensor SlicedVector::own_slice() const { return vector.narrow(0, bounds[own], own_size()); }

std::vector<std::int64_t> SlicedVector::sizes() const {
  std::vector<std::int64_t> sizes;
  for (std::size_t index = 0; index + 1 < bounds.size(); ++index) sizes.push_back(bounds[index + 1] - bounds[index]);
  return sizes;
}

SlicedVector slice_for(const Step& step, const at::Tensor& vector) {
  SlicedVector slices{vector, {}, 0};
  for (const double bound : step.bounds) {
    slices.bounds.push_back(std::llround(bound * static_cast<double>(vector.numel())));
  }
  if (step.kind != Stage::Kind::kAllReduce) slices.own = static_cast<std::size_t>(step.index);
  return slices;
}

std::int64_t bytes_sent(const Step& step, const SlicedVector& slices) {
  const auto members = static_cast<std::int64_t>(step.members.size());
  const std::int64_t range = slices.bounds.back() - slices.bounds.front();
  const auto size = static_cast<std::int64_t>(slices.vector.element_size());
  switch (step.kind) {
    case Stage::Kind::kReduceScatter:
      return (range - slices.own_size()) * size;
    case Stage::Kind::kAllReduce:
      return 2 * (members - 1) * range * size / members;
    case Stage::Kind::kAllGather:
      return slices.own_size() * (members - 1) * size;
  }
  return 0;
}

std::unique_ptr<Operation> make_operation(const Step& step, SlicedVector slices) {
  switch (step.kind) {
    case Stage::Kind::kReduceScatter:
      return make_reduce_scatter(std::move(slices));
    case Stage::Kind::kAllReduce:
      return make_all_reduce(step, std::move(slices));
    case Stage::Kind::kAllGather:
      return make_all_gather(std::move(slices));
  }
  return nullptr;
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
