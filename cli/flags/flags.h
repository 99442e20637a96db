// Flags whose values are more than text: numbers within limits, quantities with units, names from a list. A bad value
// is an InputError that names the flag, what was expected and what was found.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/error.h"
#include "dssync/topology/read.h"

namespace dssync::cli {

// Groups of flags that several verbs have.
inline constexpr const char* kWorkersGroup = "Workers and network";
inline constexpr const char* kMethodGroup = "Synchronization";

// The whole text as a number.
template <typename Number>
std::optional<Number> parse_number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A finite number of at least 0.
double parse_nonnegative(const std::string& text);
// A finite number above 0.
double parse_positive(const std::string& text);

// Any text but none at all.
std::string parse_path(const std::string& text);

// Parses a whole number of at least `least` and at most `most`.
template <typename Whole = int>
auto whole_number_from(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  return [least, most](const std::string& text) {
    const std::optional<Whole> value = parse_number<Whole>(text);
    if (value && *value >= least && *value <= most) return *value;
    const std::string range = most == std::numeric_limits<Whole>::max() ? fmt::format("of at least {}", least)
                                                                        : fmt::format("from {} to {}", least, most);
    throw InputError(fmt::format("expected a whole number {}, but found '{}'", range, text));
  };
}

// A flag whose value `apply` takes; a bad value is reported with the flag's name.
CLI::Option* add_applied(CLI::App& app, const std::string& name, std::function<void(const std::string& text)> apply,
                         const std::string& help);

// A flag whose value `parse` turns into `target`.
template <typename Target, typename Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& name, Target& target, Parse parse, const std::string& help) {
  return add_applied(
      app, name, [&target, parse](const std::string& text) { target = parse(text); }, help);
}

// A flag that takes one of these names.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& target,
                        const std::vector<std::string>& choices, const std::string& help);

// --nic and --uplink: what to take for what a topology file does not say.
void add_assumption_flags(CLI::App& app, Assumptions& assumptions);

// --format and --color, which every verb has.
void add_output_flags(CLI::App& app, std::string& format, std::string& color);

}  // namespace dssync::cli
