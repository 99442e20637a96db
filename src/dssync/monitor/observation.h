// One iteration as all workers together saw it: how long each stage took, what was on each link, and what each link has
// thereby proven to carry. Internal to the monitor. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "dssync/monitor/sample.h"
#include "dssync/planner/stage_table.h"

namespace dssync {

struct StageView {
  // The least over the members: who came last has waited for nobody. 0: not seen.
  double seconds = 0;
  // All members have reported. Otherwise whoever came last may be missing, and `seconds` may be waiting.
  bool complete = false;
};

// What the interface of a link's host counted.
struct CountedBytes {
  double bytes = 0;
  double seconds = 0;  // 0: nobody counted
};

struct IterationView {
  std::int64_t iteration = 0;
  std::vector<StageView> stages;      // by number in the table
  std::vector<double> volumes;        // by round: bytes of the vector that it averaged
  std::vector<double> bytes;          // by link: of all stages
  std::vector<double> proven;         // by link, bytes per second; 0: nothing
  std::vector<CountedBytes> counted;  // by link
  double compute_seconds = 0;         // of the slowest worker; 0: unknown
  double sync_seconds = 0;            // the least of all workers; 0: unknown
};

// Sorts, drops what makes no sense and copies: the same for any order of the samples.
SampleBatch sane(SampleBatch batch);

// `batch` holds the samples of one iteration, as sane() leaves them.
IterationView observe(const StageTable& table, std::int64_t iteration, const SampleBatch& batch, std::size_t links);

// The middle one, or the lower of two; 0 of none.
double median(std::vector<double> values);

}  // namespace dssync
