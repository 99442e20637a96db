// The flags of verbs that synchronize: what each method may be told.
#pragma once

#include <string>
#include <vector>

#include "dssync/sync/synchronizer.h"

namespace CLI {
class App;
}

namespace dssync::cli {

// --disagreement
struct LimitFlag {
  double most = 0.5;
  bool is_steered = false;
};

struct SyncFlags {
  SyncOptions options;
  LimitFlag limit;
  std::string schedule = "auto";
  bool overlap = false;
  bool in_line = false;
};

std::vector<std::string> method_names();

enum class LimitKind { kFixed, kSteerable };  // whether --disagreement may be "auto"

void add_sync_flags(CLI::App& app, SyncFlags& flags, const std::string& group, LimitKind limit);

// After parsing: names become values. Throws InputError where flags do not go together, or belong to none of `methods`.
void resolve_flags(const CLI::App& app, SyncFlags& flags, const std::vector<Method>& methods);

// Whether a group limit allows the disagreement is known before any worker starts: throws InputError where it does not.
// REQUIRES: resolved.
void check_limit(const SyncFlags& flags, const std::vector<Method>& methods, const Topology& topology, double bytes);

// Of an iteration with the slowest of the methods, at most. REQUIRES: resolved.
Seconds predicted_iteration(const SyncFlags& flags, const std::vector<Method>& methods, const Topology& topology,
                            double bytes, Seconds compute);

// The verb's flags that belong to certain methods only.
struct Belonging {
  std::string flag;
  std::vector<Method> methods;
};
void check_belonging(const CLI::App& app, const std::vector<Belonging>& belongings, const std::vector<Method>& methods);

}  // namespace dssync::cli
