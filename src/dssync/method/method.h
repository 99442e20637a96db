// The methods of synchronization, each described once: its name, how it crosses the network, when it communicates, what
// a checkpoint of it needs. What depends on a method asks here instead of naming methods. Plain values; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dssync/planner/stages.h"

namespace dssync {

enum class Method { kBspRing, kBspHierarchical, kPs, kAsp, kSsp, kLocalSgd, kDsSync };

struct MethodInfo {
  // What its workers exchange, which is also who carries it out.
  enum class Kind {
    kExactGradients,     // everyone's gradients, averaged while the backward pass runs
    kAsynchronous,       // changes of the parameters, pushed to servers and pulled from them after a step
    kScheduledAverages,  // parameters, averaged in the groups of a plan
  };
  using Lowering = dssync::Lowering (*)(const Group& group, const Topology& topology);

  Method method = Method::kDsSync;
  const char* name = "";
  Kind kind = Kind::kScheduledAverages;
  // How one exact average of everyone crosses the network, or what comes closest to it; null where a plan says it.
  Lowering lowering = nullptr;
  // A checkpoint is taken after consolidating: servers hold the model, and workers are at different iterations of it.
  bool saves_consolidated = false;
  // What travels in which codec, unless someone says so; nothing: what is fastest, level by level.
  std::optional<Codec> codec = Codec::kFloat32;

  bool follows_plan() const { return kind == Kind::kScheduledAverages; }
};

const std::vector<Method>& all_methods();
const MethodInfo& info_of(Method method);

// "bsp-ring", "ds-sync", ...; method_from_name throws InputError with the known names.
std::string name_of(Method method);
Method method_from_name(const std::string& name);
std::vector<std::string> method_names();

}  // namespace dssync
