// What the planner assumes of codecs where nobody has measured it.
#pragma once

namespace dssync {

// Float32 bytes that a worker encodes in a second, or decodes. One core does at least twice as much
// (bench/codec_bench); workers of one host share its cores with whatever else they compute.
inline constexpr double kCodecBytesPerSecond = 1e9;

// The variance of a parameter in units of what one iteration of noise adds: values are 100 times as large. Only counts
// where there is no reference, so that values travel themselves; there it makes bfloat16 add about 0.02 to S.
inline constexpr double kValueVariance = 1e4;

// Fewer bits have to make an iteration so much faster.
inline constexpr double kWorthwhileCodec = 0.995;

}  // namespace dssync
