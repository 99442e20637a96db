// What one log of `dssync train` tells, as plain values: the run's settings, its curves, its network and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dssync {

// A named value as it is shown; text stands without quotes.
using Setting = std::pair<std::string, std::string>;

// Single precision where a chart needs no more: a log may have millions of them.
struct IterationSample {
  std::int64_t iteration = 0;
  float loss = 0;
  float seconds = 0;  // of this iteration
  float compute_seconds = 0;
  float sync_seconds = 0;
  float wait_seconds = 0;  // of sync_seconds; no number where the log does not tell
  float relative_disagreement = 0;
};

struct Evaluation {
  std::int64_t iteration = 0;
  double training_seconds = 0;  // of all iterations so far, without evaluations and checkpoints
  double accuracy = 0;          // 0 to 1
  std::optional<double> loss{};
  std::optional<double> auc{};  // area under the curve, where examples are ranked
};

struct NetworkNode {
  std::string name;
  bool is_host = false;
  int parent = -1;              // index; -1 at the root. A parent stands before its children
  double bytes_per_second = 0;  // of the cable to the parent; 0: unknown
  std::vector<int> ranks;
};

struct PlannedRound {
  std::string label;
  std::vector<std::vector<int>> groups;  // of ranks
};

struct PlannedLink {
  double bytes_per_iteration = 0;
  double seconds = 0;
  double bytes_per_second = 0;  // capacity
};

// The event "network". Links are known by their names ("a0 out", "rack-a up"), one for each direction of a cable.
struct Network {
  std::string source;
  bool emulated = false;
  std::vector<NetworkNode> nodes;  // the first one is the root; empty if the log has none that form a tree
  int shards = 0;                  // 0: a method without a plan
  std::vector<PlannedRound> rounds;
  std::optional<double> steady_disagreement;  // in total, with what overlap adds
  std::optional<double> predicted_seconds;    // per iteration
  std::string bottleneck;                     // the busiest link as planned, or empty
  std::vector<std::pair<std::string, PlannedLink>> links;
};

// The last event "traffic": the bytes that each link carried in so many iterations.
struct Traffic {
  std::int64_t iterations = 0;  // since the run was started or resumed
  double seconds = 0;           // that they took
  std::map<std::string, double> bytes;
};

struct Replanned {
  std::int64_t iteration = 0;
  double seconds = 0;
  std::string reason;
};

enum class Ending { kFinished, kFailed, kInterrupted, kCutOff };

struct TrainingRun {
  std::string file;
  std::string date;  // when the log was last written, such as "2026-11-30"; empty: unknown
  std::string version;
  std::string method;
  std::string model;
  std::string data;
  int workers = 1;
  std::uint64_t seed = 0;
  std::int64_t parameters = 0;
  std::int64_t model_bytes = 0;
  std::int64_t total_iterations = 0;
  std::int64_t first_iteration = 0;  // above 0: the log begins in the middle of a run
  std::vector<Setting> options;
  std::vector<Setting> plan;             // as "started" tells it
  std::vector<std::string> command;      // empty: the log does not say
  std::vector<IterationSample> samples;  // by iteration
  std::vector<Evaluation> evaluations;
  double bytes_sent = 0;  // by rank 0, in all samples
  std::optional<Network> network;
  std::optional<Traffic> traffic;
  std::vector<Replanned> replanned;
  std::vector<std::int64_t> resumed_after;  // iterations
  std::map<std::string, std::int64_t> other_events;
  Ending ending = Ending::kCutOff;
  std::string cause;  // of a failure or an interruption
  bool torn = false;  // the last line was incomplete and was left out

  std::int64_t iterations() const { return samples.empty() ? first_iteration : samples.back().iteration; }
};

}  // namespace dssync
