#include "dssync/launch/run_id.h"

#include <random>

#include <fmt/format.h>

namespace dssync {

std::string make_run_name() {
  std::random_device random;
  std::string name;
  for (int part = 0; part < 4; ++part) name += fmt::format("{:08x}", random());
  return name;
}

std::string to_text(const RunId& run) {
  return run.attempt == 0 ? run.name : fmt::format("{}, attempt {}", run.name, run.attempt);
}

}  // namespace dssync
