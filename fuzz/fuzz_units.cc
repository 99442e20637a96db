// Any bytes as a rate, a size and a time: what is read is within its bounds and survives printing, to three digits.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dssync/base/error.h"
#include "dssync/base/units.h"
#include "invariants.h"

namespace {

template <typename Parse>
auto parsed(Parse parse, std::string_view text) -> std::optional<decltype(parse(text))> {
  try {
    return parse(text);
  } catch (const dssync::InputError&) {
    return std::nullopt;
  }
}

// Where doubles lose digits, below 1e-300, only being small counts.
bool near(double a, double b) { return std::abs(a - b) <= 0.006 * std::abs(a) + 1e-300; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto rate = parsed(dssync::parse_bandwidth, text)) {
    DSSYNC_FUZZ_CHECK(*rate >= dssync::kMinBandwidth && *rate <= dssync::kMaxBandwidth);
    const auto again = parsed(dssync::parse_bandwidth, dssync::format_bandwidth(*rate));
    DSSYNC_FUZZ_CHECK(again && near(rate->bytes_per_second, again->bytes_per_second));
  }
  if (const auto bytes = parsed(dssync::parse_bytes, text)) {
    DSSYNC_FUZZ_CHECK(*bytes >= 1 && *bytes <= std::int64_t{1} << 53);
    const auto again = parsed(dssync::parse_bytes, dssync::format_bytes(static_cast<double>(*bytes)));
    const bool rounds_beyond = *bytes > 9'000'000'000'000'000;  // 2^53 prints as 9.01 PB
    DSSYNC_FUZZ_CHECK(rounds_beyond || (again && near(static_cast<double>(*bytes), static_cast<double>(*again))));
  }
  if (const auto time = parsed(dssync::parse_duration, text)) {
    DSSYNC_FUZZ_CHECK(time->count() >= 0 && *time <= dssync::kMaxDuration);
    const auto again = parsed(dssync::parse_duration, dssync::format_duration(*time));
    DSSYNC_FUZZ_CHECK(again && near(time->count(), again->count()));
  }
  return 0;
}
