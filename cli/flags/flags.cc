#include "flags/flags.h"

#include <cmath>

namespace dssync::cli {

double parse_nonnegative(const std::string& text) {
  const std::optional<double> value = parse_number<double>(text);
  if (value && std::isfinite(*value) && *value >= 0) return *value;
  throw InputError(fmt::format("expected a number of at least 0, such as 0.5, but found '{}'", text));
}

double parse_positive(const std::string& text) {
  const std::optional<double> value = parse_number<double>(text);
  if (value && std::isfinite(*value) && *value > 0) return *value;
  throw InputError(fmt::format("expected a number above 0, such as 0.05, but found '{}'", text));
}

std::string parse_path(const std::string& text) {
  if (!text.empty()) return text;
  throw InputError("expected a path, but found ''");
}

CLI::Option* add_applied(CLI::App& app, const std::string& name, std::function<void(const std::string& text)> apply,
                         const std::string& help) {
  return app.add_option_function<std::string>(
      name,
      [name, apply = std::move(apply)](const std::string& text) {
        try {
          apply(text);
        } catch (const InputError& error) {
          throw InputError(fmt::format("{}: {}", name, error.what()));
        }
      },
      help);
}

void add_assumption_flags(CLI::App& app, Assumptions& assumptions) {
  add_parsed(app, "--nic", assumptions.nic, parse_bandwidth,
             "Take this speed for NICs of which the file says nothing (default: 10Gbps in Slurm's files, none in YAML)")
      ->type_name("RATE");
  add_parsed(
      app, "--uplink", assumptions.uplink, parse_bandwidth,
      "Take this speed for uplinks of which the file says nothing (default: that of all links below in Slurm's files, "
      "none in YAML)")
      ->type_name("RATE");
}

CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& target,
                        const std::vector<std::string>& choices, const std::string& help) {
  return app.add_option(name, target, help)->check(CLI::IsMember(choices))->type_name("NAME");
}

void add_output_flags(CLI::App& app, std::string& format, std::string& color) {
  add_choice(app, "--format", format, {"text", "json"}, "Print text for people (default) or json for programs");
  add_choice(app, "--color", color, {"auto", "always", "never"},
             "Print in colour: auto (default: on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN");
}

}  // namespace dssync::cli
