// Many tensors as views into one flat tensor per dtype and device, so that averaging needs no copies. The tensors stay
// the same objects to their owner. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/sync/replica.h"

namespace dssync {

// One flat tensor and where each of its tensors begins.
struct Flat {
  struct Part {
    std::size_t index = 0;  // in the list that was flattened
    std::int64_t offset = 0;
  };
  at::Tensor vector;  // one dimension
  std::vector<Part> parts;
};

// Moves the values into flat tensors and makes `tensors` views into them. Order within a flat tensor follows the list.
// Throws InputError, naming the tensor, where it is sparse or of a type that cannot be averaged.
std::vector<Flat> flatten(const std::vector<NamedTensor>& tensors);

// Flat tensors of the same shapes, with zeros; `tensors` are not changed. For gradients and copies.
std::vector<Flat> flat_like(const std::vector<Flat>& flats);

// The view into `flat` that has the shape of `like`.
at::Tensor view_of(const Flat& flat, std::int64_t offset, const at::Tensor& like);

std::int64_t bytes_of(const std::vector<Flat>& flats);

// One line for each tensor: name, type, shape, order in memory, kind of device; what two workers must have in common.
std::vector<std::string> describe(const std::vector<NamedTensor>& tensors);

}  // namespace dssync
