#include "dssync/sync/synchronizer.h"

#include "dssync/base/error.h"
#include "dssync/sync/methods/bsp.h"
#include "dssync/sync/methods/ds_sync.h"
#include "dssync/sync/methods/parameter_server.h"

namespace dssync {

std::string name_of(NoiseTreatment treatment) {
  switch (treatment) {
    case NoiseTreatment::kNotNeeded:
      return "not needed";
    case NoiseTreatment::kCorrected:
      return "corrected";
    case NoiseTreatment::kOff:
      return "off";
    case NoiseTreatment::kUnknown:
      return "unknown optimizer";
  }
  return "";
}

std::unique_ptr<Synchronizer> make_synchronizer(World& world, const Replica& replica, const Topology& topology,
                                                const SyncOptions& options, Timeline* timeline) {
  check(options);
  switch (info_of(options.method).kind) {
    case MethodInfo::Kind::kExactGradients:
      return make_bsp(world, replica, topology, options, timeline);
    case MethodInfo::Kind::kAsynchronous:
      return make_parameter_server(world, replica, topology, options, timeline);
    case MethodInfo::Kind::kScheduledAverages:
      return make_ds_sync(world, replica, topology, options, timeline);
  }
  throw InputError("unknown method");
}

}  // namespace dssync
