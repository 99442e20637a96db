// Several runs side by side: which belong together, how they are called, and the figures that compare them. The runs
// must outlive the comparison. Pure; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dssync/report/run.h"
#include "dssync/report/statistics.h"

namespace dssync {

// A figure of several runs.
struct Figure {
  double mean = 0;
  double low = 0;
  double high = 0;
  std::size_t count = 0;  // of runs that have it; 0: nobody does
};

Figure figure_of(const std::vector<double>& values);

// How busy a link was, or is predicted to be.
struct LinkLoad {
  std::string name;
  double bytes_per_second = 0;            // capacity; 0: unknown
  std::optional<double> predicted_bytes;  // per iteration
  std::optional<double> predicted_share;  // of the predicted iteration
  std::optional<double> measured_bytes;   // per iteration
  std::optional<double> measured_share;   // of what it could have carried during the run

  // What was measured, or else what was predicted; 0 where nothing is known.
  double share() const { return measured_share ? *measured_share : predicted_share.value_or(0); }
};

// Runs with the same settings, but for the seed.
struct RunGroup {
  std::string name;
  std::vector<const TrainingRun*> runs;
  Figure seconds_to_accuracy;  // training time, of the runs that reached it
  Figure final_accuracy;       // of the runs that finished
  Figure best_accuracy;        // of all runs that were evaluated
  Spread iteration_seconds;    // of all iterations of all runs
  double mean_seconds = 0;     // of an iteration, and its parts
  double mean_compute = 0;
  double mean_sync = 0;   // without mean_wait
  double mean_wait = 0;   // 0 where the logs do not tell
  double bytes_sent = 0;  // per iteration, by rank 0
  std::vector<LinkLoad> links;
  std::optional<double> speedup;            // to the stated accuracy, against the best bsp group
  std::optional<double> iteration_speedup;  // medians, against the fastest bsp group

  const TrainingRun& front() const { return *runs.front(); }
  // The first run that tells its network, or none.
  const TrainingRun* with_network() const;
  // The busiest link, measured where possible; none where nothing is known.
  const LinkLoad* busiest() const;
};

// Whether its method averages everyone exactly in every iteration (bsp-ring, bsp-hierarchical).
bool is_exact(const RunGroup& group);

// What sets a run of the group apart from its others: "seed 2", with the file where the seed is not enough.
std::string member_name(const RunGroup& group, const TrainingRun& run);

struct Comparison {
  std::vector<RunGroup> groups;           // in the order of their first runs
  std::optional<double> accuracy;         // the stated one; none where nothing was evaluated
  bool accuracy_was_given = false;        // rather than found
  std::optional<std::size_t> best_exact;  // the bsp group that reached the accuracy first
};

// `accuracy`: 0 to 1, or none for the highest whole or half percent that all runs which finished reached.
Comparison compare(const std::vector<TrainingRun>& runs, std::optional<double> accuracy);

// Training time until the run's first evaluation with at least this accuracy.
std::optional<double> seconds_to(const TrainingRun& run, double accuracy);

// The settings whose values are not the same in all runs, with the values in the order of their first appearance.
struct Difference {
  std::string name;
  std::vector<std::string> values;
};
std::vector<Difference> differences(const std::vector<const TrainingRun*>& runs);
// The name of a setting for readers: "batch size" for "batch_size".
std::string in_words(std::string name);

// The paragraph that says what came out, as plain text: nothing in it that is not in the data.
std::string conclusion(const Comparison& comparison);

}  // namespace dssync
