#include "dssync/sync/tensor_set.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"
#include "dssync/comm/c10d/c10d.h"

namespace dssync {
namespace {

void check(const NamedTensor& named) {
  const at::Tensor& tensor = named.tensor;
  if (!tensor.defined()) throw InputError(fmt::format("'{}' is no tensor", named.name));
  if (tensor.layout() != at::kStrided)
    throw InputError(fmt::format("'{}' is sparse, which cannot be averaged", named.name));
  if (!can_sum(tensor.scalar_type())) {
    throw InputError(fmt::format("'{}' is of type {}, which this PyTorch's c10d cannot sum", named.name,
                                 c10::toString(tensor.scalar_type())));
  }
}

Flat& flat_for(std::vector<Flat>& flats, std::vector<at::TensorOptions>& kinds, const at::Tensor& tensor) {
  for (std::size_t index = 0; index < flats.size(); ++index) {
    if (kinds[index].dtype() == tensor.dtype() && kinds[index].device() == tensor.device()) return flats[index];
  }
  kinds.push_back(at::TensorOptions().dtype(tensor.dtype()).device(tensor.device()));
  return flats.emplace_back();
}

// Where each tensor goes; the flat tensors hold zeros.
std::vector<Flat> layout_of(const std::vector<NamedTensor>& tensors) {
  std::vector<Flat> flats;
  std::vector<at::TensorOptions> kinds;
  std::vector<std::int64_t> sizes;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    check(tensors[index]);
    Flat& flat = flat_for(flats, kinds, tensors[index].tensor);
    sizes.resize(flats.size());
    std::int64_t& size = sizes[static_cast<std::size_t>(&flat - flats.data())];
    flat.parts.push_back({index, size});
    size += tensors[index].tensor.numel();
  }
  for (std::size_t kind = 0; kind < flats.size(); ++kind) flats[kind].vector = at::zeros({sizes[kind]}, kinds[kind]);
  return flats;
}

// `action` gets every tensor that begins in the slice, with its place in the flat one.
template <typename Action>
void for_each_part(const std::vector<Flat>& flats, const FlatSlice& slice, const std::vector<NamedTensor>& tensors,
                   Action action) {
  const at::NoGradGuard no_grad;
  const Flat& flat = flats[slice.flat];
  for (const Flat::Part& part : flat.parts) {
    if (part.offset < slice.begin || part.offset >= slice.end) continue;
    at::Tensor tensor = tensors[part.index].tensor;
    action(tensor, view_of(flat, part.offset, tensor));
  }
}

// Where all its tensors begin, an empty one at the end among them.
FlatSlice all_of(const std::vector<Flat>& flats, std::size_t flat) { return {flat, 0, flats[flat].vector.numel() + 1}; }

}  // namespace

at::Tensor view_of(const Flat& flat, std::int64_t offset, const at::Tensor& like) {
  const at::Tensor slice = flat.vector.narrow(0, offset, like.numel());
  // Keeps the order in memory (channels last, say) where the tensor has no holes.
  if (like.is_non_overlapping_and_dense()) return slice.as_strided(like.sizes(), like.strides());
  return slice.view(like.sizes());
}

TensorSet::TensorSet(std::vector<NamedTensor> tensors, Storage storage) : flats_(layout_of(tensors)) {
  for (std::size_t flat = 0; flat < flats_.size(); ++flat) {
    for_each_part(flats_, all_of(flats_, flat), tensors, [storage](at::Tensor& tensor, const at::Tensor& place) {
      place.copy_(tensor.detach());
      if (storage == Storage::kOwned) tensor.set_data(place);
    });
  }
  if (storage == Storage::kBorrowed) borrowed_ = std::move(tensors);
}

std::int64_t TensorSet::bytes() const {
  std::int64_t result = 0;
  for (const Flat& flat : flats_) result += static_cast<std::int64_t>(flat.vector.nbytes());
  return result;
}

void TensorSet::gather() {
  for (std::size_t flat = 0; flat < flats_.size(); ++flat) gather(all_of(flats_, flat));
}

void TensorSet::scatter() const {
  for (std::size_t flat = 0; flat < flats_.size(); ++flat) scatter(all_of(flats_, flat));
}

void TensorSet::gather(const FlatSlice& slice) {
  if (borrowed_.empty()) return;
  for_each_part(flats_, slice, borrowed_,
                [](const at::Tensor& tensor, const at::Tensor& place) { place.copy_(tensor.detach()); });
}

void TensorSet::scatter(const FlatSlice& slice) const {
  if (borrowed_.empty()) return;
  for_each_part(flats_, slice, borrowed_,
                [](at::Tensor& tensor, const at::Tensor& place) { tensor.detach().copy_(place); });
}

at::Tensor stretch_of(const std::vector<Flat>& flats, const FlatSlice& slice) {
  return flats[slice.flat].vector.narrow(0, slice.begin, slice.end - slice.begin);
}

std::vector<Flat> flat_like(const std::vector<Flat>& flats) {
  std::vector<Flat> result = flats;
  for (Flat& flat : result) flat.vector = at::zeros_like(flat.vector);
  return result;
}

std::vector<std::string> describe(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : tensors) {
    std::string line = fmt::format("{} {} [{}]", name, c10::toString(tensor.scalar_type()),
                                   fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "));
    if (!tensor.is_contiguous()) line += fmt::format(" with strides [{}]", fmt::join(tensor.strides(), ", "));
    if (!tensor.is_cpu()) line += fmt::format(" on {}", c10::DeviceTypeName(tensor.device().type(), true));
    result.push_back(std::move(line));
  }
  return result;
}

}  // namespace dssync
