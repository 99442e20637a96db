// What all workers have in common, bit by bit: values travel as differences to it, which are small, so that few bits
// tell them well (docs/codecs.md). For each element the result of the last average of everyone; in the beginning rank
// 0's values. Owned by ds-sync; not thread-safe.
//
// Only of flat tensors of float32: others travel as they are.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/sync/replica.h"
#include "dssync/sync/tensor_set.h"

namespace dssync {

class Reference {
 public:
  // A copy of these values, which all workers have.
  explicit Reference(const std::vector<Flat>& values);

  // Turns the values of these slices into differences, before they are averaged, and back.
  void subtract_from(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices) const;
  void add_to(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices) const;

  // All workers have the same values in these slices now.
  void move_to(const std::vector<Flat>& values, const std::vector<FlatSlice>& slices);
  // In all of them.
  void move_to(const std::vector<Flat>& values);

  // For checkpoints: copies by name, and the other way. Whether all that it needs was there and of the right size;
  // where not, it stays as it is.
  void save(std::vector<NamedTensor>& tensors) const;
  bool restore(const std::vector<NamedTensor>& tensors);

  // What it holds itself.
  std::vector<at::Tensor> tensors() const;

 private:
  std::vector<at::Tensor> of_flat_;  // undefined where it has none
};

}  // namespace dssync
