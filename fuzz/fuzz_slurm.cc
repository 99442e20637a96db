// Any bytes as Slurm's topology.conf, and as a host range: what is read holds its invariants, or there is an
// InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"
#include "invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (dssync::fuzz::asks_for_many_names(text)) return 0;
  dssync::Assumptions assumptions;
  if (size % 2 == 0) assumptions = {dssync::Bandwidth{1e6}, dssync::Bandwidth{2e6}};
  try {
    const dssync::ReadResult result = dssync::read_slurm_topology(text, "fuzz.conf", assumptions);
    dssync::fuzz::check_topology(result.topology);
    DSSYNC_FUZZ_CHECK(!result.notes.empty());  // NICs are always assumed
  } catch (const dssync::InputError&) {
  }
  constexpr std::size_t kLimit = 1000;
  try {
    const std::size_t names = dssync::expand_host_range(text, kLimit).size();
    DSSYNC_FUZZ_CHECK(names >= 1 && names <= kLimit);
  } catch (const dssync::InputError&) {
  }
  return 0;
}
