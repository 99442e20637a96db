#include "dssync/training/trace_file.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dssync/base/durable_file.h"

namespace dssync {

Clock::time_point common_origin(Exchange& exchange) {
  using std::chrono::nanoseconds;
  using std::chrono::system_clock;
  const auto nanoseconds_now = [] {
    return std::chrono::duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  };
  const std::int64_t origin = std::stoll(exchange.broadcast("origin of the trace", std::to_string(nanoseconds_now())));
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(nanoseconds(nanoseconds_now() - origin));
}

void write_trace(Exchange& exchange, int rank, const Timeline& timeline, Clock::time_point origin,
                 const std::filesystem::path& file) {
  const auto dropped = exchange.gather("dropped spans", std::to_string(timeline.dropped()));
  const auto events = exchange.gather("trace", trace_events(timeline.spans(), rank, origin));
  if (rank != 0) return;
  std::vector<std::string_view> parts{"{\"traceEvents\":[\n"};
  for (const std::string& text : events) {
    if (parts.size() > 1) parts.emplace_back(",\n");
    parts.emplace_back(text);
  }
  const std::string end = fmt::format("\n],\n\"droppedSpans\":[{}]}}\n", fmt::join(dropped, ","));
  parts.emplace_back(end);
  write_durably(file, parts, "the trace");
}

}  // namespace dssync
