// Many tensors as one flat tensor per dtype and device: what averages work on. A set owns its storage or borrows it.
//
// Owned: the tensors become views into the flat ones, and stay the same objects to their owner. An average needs no
// copies. Borrowed: the tensors stay where they are (buffers, shards of a DTensor, rows of an embedding). gather()
// copies their values in before an average, scatter() copies the results back. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dssync/sync/replica.h"

namespace dssync {

// One flat tensor and where each of its tensors begins.
struct Flat {
  struct Part {
    std::size_t index = 0;  // in the list of tensors
    std::int64_t offset = 0;
  };
  at::Tensor vector;  // one dimension
  std::vector<Part> parts;
};

// The elements [begin, end) of one flat tensor.
struct FlatSlice {
  std::size_t flat = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class TensorSet {
 public:
  TensorSet() = default;
  // Order within a flat tensor follows the list. Throws InputError, naming the tensor, where it is sparse or of a type
  // that cannot be averaged.
  TensorSet(std::vector<NamedTensor> tensors, Storage storage);

  const std::vector<Flat>& flats() const { return flats_; }
  std::int64_t bytes() const;

  // Borrowed: the flat tensors take over the tensors' values. Owned: they are the same already.
  void gather();
  // Borrowed: the tensors take over the flat ones' values.
  void scatter() const;

  // The same for the tensors that begin in a slice, which cuts none of them.
  void gather(const FlatSlice& slice);
  void scatter(const FlatSlice& slice) const;

 private:
  std::vector<NamedTensor> borrowed_;  // none where the set owns its storage
  std::vector<Flat> flats_;
};

// Flat tensors of the same shapes, with zeros. For gradients and copies.
std::vector<Flat> flat_like(const std::vector<Flat>& flats);

at::Tensor stretch_of(const std::vector<Flat>& flats, const FlatSlice& slice);

// The view into `flat` that has the shape of `like`.
at::Tensor view_of(const Flat& flat, std::int64_t offset, const at::Tensor& like);

// One line for each tensor: name, type, shape, order in memory, kind of device; what two workers must have in common.
std::vector<std::string> describe(const std::vector<NamedTensor>& tensors);

}  // namespace dssync
