// Parsing and printing of rates, sizes and times.
#include "dssync/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Names a quantity in messages.
struct Quantity {
  std::string_view what;      // "bandwidth"
  std::string_view expected;  // "a number with a unit, such as 50Mbps"
};

constexpr Quantity kBandwidth{"bandwidth", "a positive number with a unit, such as 50Mbps, 1.5Gbit/s or 25MB/s"};
constexpr Quantity kBytes{"size", "a positive whole number of bytes with a unit, such as 8MB, 512KiB or 1B"};
constexpr Quantity kDuration{"time", "zero or a positive number with a unit, such as 20ms, 50us or 1.5s"};

[[noreturn]] void fail(const Quantity& quantity, std::string_view text, std::string_view problem) {
  throw InputError(fmt::format("{} {} {}; expected {}", quantity.what, quote(text), problem, quantity.expected));
}

// Splits "1.5 Gbps" into a number and "Gbps". The unit is never empty.
std::pair<double, std::string_view> split(std::string_view text, const Quantity& quantity) {
  const std::string_view body = trimmed(text);
  if (body.empty()) fail(quantity, text, "is empty");
  if (body.front() == '-') fail(quantity, text, "is negative");
  const bool digit = body.front() >= '0' && body.front() <= '9';
  if (!digit && body.front() != '.') fail(quantity, text, "is not a number");  // keeps from_chars from reading "inf"
  double number = 0;
  const auto [end, problem] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (problem == std::errc::result_out_of_range) fail(quantity, text, "is out of range");
  if (problem != std::errc()) fail(quantity, text, "is not a number");
  const std::string_view unit = trimmed(body.substr(static_cast<std::size_t>(end - body.data())));
  if (unit.empty()) fail(quantity, text, "has no unit");
  return {number, unit};
}

std::optional<double> find_factor(std::string_view unit, std::span<const Unit> units) {
  for (const Unit& known : units) {
    if (known.name == unit) return known.factor;
  }
  return std::nullopt;
}

constexpr std::array<Unit, 11> kPrefixes{{{"", 1},
                                          {"k", 1e3},
                                          {"K", 1e3},
                                          {"M", 1e6},
                                          {"G", 1e9},
                                          {"T", 1e12},
                                          {"P", 1e15},
                                          {"Ki", 1024.0},
                                          {"Mi", 1048576.0},
                                          {"Gi", 1073741824.0},
                                          {"Ti", 1099511627776.0}}};

// "Mbps" with the bases {"bps", 1/8} -> 1e6/8.
std::optional<double> find_prefixed(std::string_view unit, std::span<const Unit> bases) {
  for (const Unit& base : bases) {
    if (!unit.ends_with(base.name)) continue;
    const auto prefix = find_factor(unit.substr(0, unit.size() - base.name.size()), kPrefixes);
    if (prefix) return *prefix * base.factor;
  }
  return std::nullopt;
}

[[noreturn]] void fail_unit(const Quantity& quantity, std::string_view text, std::string_view unit) {
  fail(quantity, text, fmt::format("has the unknown unit {} (capitals matter)", quote(unit)));
}

// Three significant digits, without an exponent.
std::string three_digits(double value) {
  return std::abs(value) >= 999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// REQUIRES: `units` from the largest to the smallest.
std::string format_with(double value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    const double scaled = value / unit.factor;
    if (std::abs(scaled) >= 0.9995) return fmt::format("{} {}", three_digits(scaled), unit.name);
  }
  return fmt::format("{} {}", three_digits(value / units.back().factor), units.back().name);
}

}  // namespace

Bandwidth parse_bandwidth(std::string_view text) {
  constexpr std::array<Unit, 4> kBases{{{"bps", 0.125}, {"bit/s", 0.125}, {"B/s", 1}, {"Bps", 1}}};
  const auto [number, unit] = split(text, kBandwidth);
  const auto factor = find_prefixed(unit, kBases);
  if (!factor) fail_unit(kBandwidth, text, unit);
  const double rate = number * *factor;
  if (number == 0) fail(kBandwidth, text, "is zero");
  if (!(rate >= kMinBandwidth.bytes_per_second)) fail(kBandwidth, text, "is below 1 bit/s");
  if (!(rate <= kMaxBandwidth.bytes_per_second)) fail(kBandwidth, text, "is above 1000 Pbit/s");
  return {rate};
}

std::int64_t parse_bytes(std::string_view text) {
  constexpr std::array<Unit, 1> kBases{{{"B", 1}}};
  constexpr double kMost = 9007199254740992.0;  // 2^53: every whole number up to here is a double
  const auto [number, unit] = split(text, kBytes);
  const auto factor = find_prefixed(unit, kBases);
  if (!factor) fail_unit(kBytes, text, unit);
  const double bytes = number * *factor;
  const double whole = std::round(bytes);
  if (number == 0) fail(kBytes, text, "is zero");
  if (!(bytes <= kMost)) fail(kBytes, text, "is above 2^53 bytes");
  // "1.1MB" is whole although 1.1 is no double.
  if (std::abs(bytes - whole) > 4 * std::numeric_limits<double>::epsilon() * bytes) {
    fail(kBytes, text, "is not a whole number of bytes");
  }
  return static_cast<std::int64_t>(whole);
}

Seconds parse_duration(std::string_view text) {
  constexpr std::array<Unit, 7> kUnits{{{"s", 1},
                                        {"ms", 1e-3},
                                        {"us", 1e-6},
                                        {"\u00B5s", 1e-6},  // micro sign
                                        {"\u03BCs", 1e-6},  // Greek mu
                                        {"ns", 1e-9},
                                        {"min", 60}}};
  const auto [number, unit] = split(text, kDuration);
  const auto factor = find_factor(unit, kUnits);
  if (!factor) fail_unit(kDuration, text, unit);
  const Seconds result(number * *factor);
  if (!(result <= kMaxDuration)) fail(kDuration, text, "is above 1e9 seconds");
  return result;
}

std::string format_bandwidth(Bandwidth value) {
  constexpr std::array<Unit, 6> kUnits{
      {{"Pbit/s", 1e15}, {"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1}}};
  return format_with(value.bytes_per_second * 8, kUnits);
}

std::string format_bytes(double bytes) {
  constexpr std::array<Unit, 6> kUnits{{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}};
  return format_with(bytes, kUnits);
}

std::string format_duration(Seconds value) {
  constexpr std::array<Unit, 4> kUnits{{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  if (value.count() == 0) return "0 s";
  return format_with(value.count(), kUnits);
}

}  // namespace dssync
