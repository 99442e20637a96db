#include "dssync/sync/reference.h"

#include <algorithm>
#include <string>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace dssync {
namespace {

std::string name_of_flat(std::size_t flat) { return fmt::format("reference {}", flat); }

at::Tensor narrowed(const at::Tensor& vector, const FlatSlice& slice) {
  return vector.narrow(0, slice.begin, slice.end - slice.begin);
}

}  // namespace

Reference::Reference(const std::vector<Flat>& values) {
  for (const Flat& flat : values) {
    of_flat_.push_back(flat.vector.scalar_type() == at::kFloat ? flat.vector.clone() : at::Tensor());
  }
}

void Reference::subtract_from(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices) const {
  for (const FlatSlice& slice : slices) {
    if (of_flat_[slice.flat].defined()) stretch_of(values, slice).sub_(narrowed(of_flat_[slice.flat], slice));
  }
}

void Reference::add_to(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices) const {
  for (const FlatSlice& slice : slices) {
    if (of_flat_[slice.flat].defined()) stretch_of(values, slice).add_(narrowed(of_flat_[slice.flat], slice));
  }
}

void Reference::move_to(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices) {
  for (const FlatSlice& slice : slices) {
    if (of_flat_[slice.flat].defined()) narrowed(of_flat_[slice.flat], slice).copy_(stretch_of(values, slice));
  }
}

void Reference::move_to(const std::vector<Flat>& values) {
  for (std::size_t flat = 0; flat < of_flat_.size(); ++flat) {
    if (of_flat_[flat].defined()) of_flat_[flat].copy_(values[flat].vector);
  }
}

void Reference::save(std::vector<NamedTensor>& tensors) const {
  for (std::size_t flat = 0; flat < of_flat_.size(); ++flat) {
    if (of_flat_[flat].defined()) tensors.push_back({name_of_flat(flat), of_flat_[flat].clone()});
  }
}

bool Reference::restore(const std::vector<NamedTensor>& tensors) {
  std::vector<const at::Tensor*> found(of_flat_.size());
  for (std::size_t flat = 0; flat < of_flat_.size(); ++flat) {
    if (!of_flat_[flat].defined()) continue;
    const auto named = std::find_if(tensors.begin(), tensors.end(),
                                    [flat](const NamedTensor& tensor) { return tensor.name == name_of_flat(flat); });
    if (named == tensors.end() || named->tensor.numel() != of_flat_[flat].numel()) return false;
    found[flat] = &named->tensor;
  }
  for (std::size_t flat = 0; flat < of_flat_.size(); ++flat) {
    if (found[flat] != nullptr) of_flat_[flat].copy_(found[flat]->view({-1}));
  }
  return true;
}

std::vector<at::Tensor> Reference::tensors() const {
  std::vector<at::Tensor> result;
  for (const at::Tensor& tensor : of_flat_) {
    if (tensor.defined()) result.push_back(tensor);
  }
  return result;
}

}  // namespace dssync
