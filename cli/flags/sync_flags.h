// The flags of verbs that synchronize: what each method may be told. They follow from sync_options().
#pragma once

#include <string>
#include <vector>

#include "dssync/base/units.h"
#include "dssync/method/options.h"
#include "dssync/topology/topology.h"

namespace CLI {
class App;
}

namespace dssync::cli {

// Which verb has the flags: `bench` has no flags of training, and a limit on S that stays as it is.
enum class SyncVerb { kTrain, kBench };

// Parsing fills `options` but for switches.
void add_sync_flags(CLI::App& app, SyncOptions& options, const std::string& group, SyncVerb verb);

// After parsing: switches become values. Throws InputError where flags do not go together, or belong to none of
// `methods`.
void complete_sync_options(const CLI::App& app, SyncOptions& options, const std::vector<Method>& methods);

// Whether a group limit allows the disagreement is known before any worker starts: throws InputError where it does not.
void check_limit(const SyncOptions& options, const std::vector<Method>& methods, const Topology& topology,
                 double bytes);

// Of an iteration with the slowest of the methods, at most.
Seconds predicted_iteration(const SyncOptions& options, const std::vector<Method>& methods, const Topology& topology,
                            double bytes, Seconds compute);

}  // namespace dssync::cli
