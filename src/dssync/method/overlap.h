// When averages of ds-sync run beside computing: the choice of a mode, and for the layered one the order of averages
// and what an iteration takes. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dssync/base/units.h"

namespace dssync {

// docs/runtime.md says what happens when.
enum class Overlap {
  kAuto,     // the best of the others
  kInLine,   // "none": step, average, go on
  kLayered,  // a bucket is stepped and averaged as soon as its gradients are there, and the next forward pass waits for
             // each layer's parameters; computes what kInLine computes
  kCombine,  // adapt-while-combine: averages what the iteration began with while it runs; adds 1 - 1/N to S
};

// "auto", "none", "layered", "combine"; the other way, "on" and "true" stand for auto, "off" and "false" for none.
// Throws InputError.
std::string name_of(Overlap overlap);
Overlap overlap_from_name(const std::string& name);

// What is done where `asked` is asked for. `can_step_early`: the replica has a step of its own (Replica::step), without
// which layered averages overlap less.
Overlap resolve(Overlap asked, bool can_step_early);

// Of the computing in an iteration; a backward pass computes twice as much.
inline constexpr double kForwardPart = 1.0 / 3;

// Buckets that a large model is cut into: the backward pass does not hide the last of them, and each takes messages of
// its own.
inline constexpr std::size_t kMostBuckets = 16;

// How many buckets a model of so many bytes has, whose averages take so long: each bucket is worth its messages.
std::size_t buckets_of(double bytes, Seconds communication);

// Buckets are numbered as the backward pass completes them, in equal steps; the forward pass needs them the other way
// round. In which order to average them, so that the iteration takes least, or hardly more; as they are completed where
// there are more than kMostBuckets.
std::vector<std::size_t> order_of_averages(std::size_t buckets, Seconds compute, Seconds communication);

// What a layered iteration takes: computing, and then the average of the last bucket, which nothing hides; or all
// averages, after the first bucket of the backward pass and before the last two of the forward pass. Up to a tenth less
// than it takes where neither is much more than the other.
Seconds layered_seconds(std::size_t buckets, Seconds compute, Seconds communication);

}  // namespace dssync
