// The IDX format of the MNIST family of data sets: a magic number, the dimensions, then bytes. Gzipped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <ATen/core/Tensor.h>

namespace dssync {

// A uint8 tensor of the file's dimensions. `expected` are these dimensions, -1 where any size is right.
// Throws InputError that names the file where it cannot be read, is damaged or truncated, has other dimensions, or goes
// on after its end.
at::Tensor read_idx(const std::filesystem::path& file, const std::vector<std::int64_t>& expected);

}  // namespace dssync
