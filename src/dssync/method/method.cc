#include "dssync/method/method.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/error.h"

namespace dssync {

namespace {

const std::vector<MethodInfo>& infos() {
  using Kind = MethodInfo::Kind;
  static const std::vector<MethodInfo> methods = {
      {Method::kBspRing, "bsp-ring", Kind::kExactGradients, lower_to_ring},
      {Method::kBspHierarchical, "bsp-hierarchical", Kind::kExactGradients, lower_hierarchically},
      {Method::kPs, "ps", Kind::kExactGradients, lower_to_servers},
      {Method::kAsp, "asp", Kind::kAsynchronous, lower_to_servers, true},
      {Method::kSsp, "ssp", Kind::kAsynchronous, lower_to_servers, true},
      {Method::kLocalSgd, "local-sgd", Kind::kScheduledAverages},
      {Method::kDsSync, "ds-sync", Kind::kScheduledAverages},
  };
  return methods;
}

}  // namespace

const std::vector<Method>& all_methods() {
  static const std::vector<Method> methods = [] {
    std::vector<Method> result;
    for (const MethodInfo& info : infos()) result.push_back(info.method);
    return result;
  }();
  return methods;
}

const MethodInfo& info_of(Method method) {
  const std::vector<MethodInfo>& methods = infos();
  return *std::find_if(methods.begin(), methods.end(), [&](const MethodInfo& info) { return info.method == method; });
}

std::string name_of(Method method) { return info_of(method).name; }

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodInfo& info : infos()) names.emplace_back(info.name);
  return names;
}

Method method_from_name(const std::string& name) {
  for (const MethodInfo& info : infos()) {
    if (name == info.name) return info.method;
  }
  throw InputError(fmt::format("expected one of {}, but found '{}'", fmt::join(method_names(), ", "), name));
}

}  // namespace dssync
