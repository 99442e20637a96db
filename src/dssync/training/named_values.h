// The tensors of a model by name: taken out, and given other values. Not thread-safe.
#pragma once

#include <vector>

#include <torch/nn/module.h>

#include "dssync/sync/replica.h"

namespace dssync {

std::vector<NamedTensor> named_parameters_of(const torch::nn::Module& model);
std::vector<NamedTensor> named_buffers_of(const torch::nn::Module& model);

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors);

// Into tensors that stay where they are: a synchronizer made them views. Throws Error, with `what`, where names or
// shapes are others.
void copy_into(const std::vector<NamedTensor>& targets, const std::vector<NamedTensor>& values, const char* what);

}  // namespace dssync
