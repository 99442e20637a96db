#include "dssync/collective/explain.h"

#include "dssync/comm/world.h"

namespace dssync {

Explain explained_by(World& world) {
  return [&world](const std::string& doing, const std::vector<Rank>& members, const std::string& what) {
    return std::make_exception_ptr(world.explain(doing, members, what));
  };
}

}  // namespace dssync
