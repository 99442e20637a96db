// Any bytes as a training log: a page in which nothing of the log became a tag, or an InputError.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "dssync/base/error.h"
#include "dssync/report/read_run.h"
#include "dssync/report/report.h"
#include "invariants.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // So that small changes of the input reach what comes after the first line.
  const std::string start = "{\"event\":\"started\",\"method\":\"ds-sync\",\"workers\":4,\"total_iterations\":9}\n";
  std::istringstream input((size % 4 == 0 ? "" : start) + std::string(reinterpret_cast<const char*>(data), size));
  try {
    const std::vector<dssync::TrainingRun> runs{dssync::read_run(input, "fuzz.jsonl")};
    const std::string page = dssync::make_report(runs, {});
    DSSYNC_FUZZ_CHECK(page.ends_with("</html>\n"));
    DSSYNC_FUZZ_CHECK(page.find("=\"nan") == std::string::npos && page.find("=\"inf") == std::string::npos);
  } catch (const dssync::InputError&) {
  }
  return 0;
}
