// The tuned numbers of averages: each with its unit and its reason. What the planner has to know as well stands in
// planner/cost.h (kPiecesPerIteration), and what a channel is made with in comm/c10d/c10d.h (kChannelThreads).
#pragma once

#include <cstdint>

#include "dssync/base/units.h"

namespace dssync::tuning {

// Bytes from which a message is worth its fixed costs on a fast network. Slices that are smaller on average travel as
// one, through a copy.
inline constexpr std::int64_t kWorthwhileBytes = 256 << 10;

// Bytes of a slice from which a pair leaves the sum to c10d as larger groups do. It adds up while it receives, in
// memory that stays in a cache: 8 MB over loopback take a third less time than an exchange. Below, one step less counts
// for more.
inline constexpr std::int64_t kLongPairBytes = 8 * kWorthwhileBytes;

// Bytes of the shortest piece of a pipeline: below, the fixed costs of its messages outweigh an earlier start.
inline constexpr double kShortestPieceBytes = 16 << 10;

// Time of the shortest piece of a pipeline on its busiest link: as above, for networks on which that is more bytes.
inline constexpr Seconds kShortestPieceTime{0.005};

// The first and the last piece of a pipeline are that many times shorter than the others, so that the slowest phase
// starts early and little is left to do after it.
inline constexpr int kShortEnds = 4;

// With so many pieces in its slowest phase, a kind of average has enough to do for its slowest links.
inline constexpr int kWellFed = 3;

// From the end of one operation to the first bytes of the next one in the same channel, at worst: a turn of the driver
// and of c10d's threads on a busy machine. Operations that take less run several at once, so that no link is idle.
inline constexpr Seconds kGapBetweenOperations{0.06};

// Elements that a CPU adds up and divides at once: so many stay in its cache.
inline constexpr std::int64_t kBlockElements = 64 << 10;

}  // namespace dssync::tuning
