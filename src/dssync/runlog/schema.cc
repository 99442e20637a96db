#include "dssync/runlog/schema.h"

#include <algorithm>
#include <array>

namespace dssync {
namespace {

constexpr std::array kEventNames{"started",    "resumed", "network",  "iteration", "evaluated",  "replanned",
                                 "checkpoint", "traffic", "finished", "failed",    "interrupted"};
static_assert(kEventNames.size() == static_cast<std::size_t>(LogEvent::kInterrupted) + 1);

}  // namespace

const char* name_of(LogEvent event) { return kEventNames[static_cast<std::size_t>(event)]; }

std::optional<LogEvent> log_event_from(std::string_view text) {
  const auto found = std::find(kEventNames.begin(), kEventNames.end(), text);
  if (found == kEventNames.end()) return std::nullopt;
  return static_cast<LogEvent>(found - kEventNames.begin());
}

}  // namespace dssync
