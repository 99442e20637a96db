#include "dssync/sync/synchronizer.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/sync/methods/bsp.h"
#include "dssync/sync/methods/ds_sync.h"
#include "dssync/sync/methods/parameter_server.h"

namespace dssync {
namespace {

constexpr std::array<std::pair<Method, const char*>, 7> kMethods = {{
    {Method::kBspRing, "bsp-ring"},
    {Method::kBspHierarchical, "bsp-hierarchical"},
    {Method::kPs, "ps"},
    {Method::kAsp, "asp"},
    {Method::kSsp, "ssp"},
    {Method::kLocalSgd, "local-sgd"},
    {Method::kDsSync, "ds-sync"},
}};

constexpr std::array<std::pair<StateTreatment, const char*>, 3> kTreatments = {{
    {StateTreatment::kLocal, "local"},
    {StateTreatment::kAveraged, "averaged"},
    {StateTreatment::kRotating, "rotating"},
}};

template <typename Table, typename Value>
std::string name_in(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "";
}

template <typename Table>
auto value_in(const Table& table, const std::string& name) {
  std::string names;
  for (const auto& [value, known] : table) {
    if (name == known) return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw InputError(fmt::format("expected one of {}, but found '{}'", names, name));
}

void require(bool holds, const std::string& what) {
  if (!holds) throw InputError(what);
}

void check(const SyncOptions& options) {
  require(options.state_period >= 1,
          fmt::format("state period: expected at least 1, but found {}", options.state_period));
  require(options.period >= 1, fmt::format("period: expected at least 1, but found {}", options.period));
  require(options.staleness >= 0, fmt::format("staleness: expected at least 0, but found {}", options.staleness));
  require(options.warmup_iterations >= 0,
          fmt::format("warm-up: expected at least 0 iterations, but found {}", options.warmup_iterations));
  const bool plans = options.method == Method::kDsSync && !options.plan && !options.published;
  require(!options.adapt || plans, "adapt: only plans that ds-sync makes itself can be replaced by others");
  require(!options.steer || options.adapt, "steer: expected adapt as well");
  require(options.bucket_bytes >= 1,
          fmt::format("bucket: expected at least 1 byte, but found {}", options.bucket_bytes));
}

}  // namespace

std::string name_of(Method method) { return name_in(kMethods, method); }
Method method_from_name(const std::string& name) { return value_in(kMethods, name); }

std::string name_of(StateTreatment treatment) { return name_in(kTreatments, treatment); }
StateTreatment state_treatment_from_name(const std::string& name) { return value_in(kTreatments, name); }

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = [] {
    std::vector<Method> result;
    for (const auto& [method, name] : kMethods) result.push_back(method);
    return result;
  }();
  return methods;
}

std::unique_ptr<Synchronizer> make_synchronizer(World& world, const Replica& replica, const Topology& topology,
                                                const SyncOptions& options, Timeline* timeline) {
  check(options);
  switch (options.method) {
    case Method::kBspRing:
    case Method::kBspHierarchical:
    case Method::kPs:
      return make_bsp(world, replica, topology, options, timeline);
    case Method::kAsp:
    case Method::kSsp:
      return make_parameter_server(world, replica, topology, options, timeline);
    case Method::kLocalSgd: {
      SyncOptions local = options;
      local.state = StateTreatment::kLocal;
      return make_ds_sync(world, replica, topology, local, timeline);
    }
    case Method::kDsSync:
      return make_ds_sync(world, replica, topology, options, timeline);
  }
  throw InputError("unknown method");
}

}  // namespace dssync
