// Any bytes as a YAML topology: a topology that holds its invariants, or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"
#include "invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (dssync::fuzz::asks_for_many_names(text)) return 0;
  dssync::Assumptions assumptions;  // so that more inputs reach the tree
  if (size % 2 == 0) assumptions = {dssync::Bandwidth{1e6}, dssync::Bandwidth{2e6}};
  try {
    dssync::fuzz::check_topology(dssync::read_yaml_topology(text, "fuzz.yaml", assumptions).topology);
  } catch (const dssync::InputError&) {
  }
  return 0;
}
