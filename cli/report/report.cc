#include "report/report.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "dssync/base/durable_file.h"
#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/report/comparison.h"
#include "dssync/report/read_run.h"
#include "dssync/report/report.h"
#include "flags/flags.h"
#include "report/report_text.h"
#include "terminal/output.h"
#include "text/style.h"

namespace dssync::cli {
namespace {

namespace fs = std::filesystem;

// "88%" or "88 %" as 0.88.
double parse_percent(const std::string& text) {
  std::string_view number = trimmed(text);
  const bool has_unit = number.ends_with('%');
  if (has_unit) number = trimmed(number.substr(0, number.size() - 1));
  const std::optional<double> value = parse_number<double>(std::string(number));
  if (has_unit && value && *value > 0 && *value <= 100) return *value / 100;
  throw InputError(fmt::format("expected a percentage above 0% and up to 100%, such as 88%, but found '{}'", text));
}

// A slip such as `-o run.jsonl other.jsonl` must not cost a log: only pages and new files are written.
void check_output(const ReportFlags& flags) {
  std::error_code ignored;
  for (const std::string& log : flags.logs) {
    if (fs::equivalent(flags.output, log, ignored))
      throw InputError(flags.output, 0, "is one of the logs; choose another file for -o");
  }
  if (fs::is_directory(flags.output, ignored))
    throw InputError(flags.output, 0, "is a folder; -o takes the name of a file");
  if (!fs::exists(flags.output, ignored) || fs::file_size(flags.output, ignored) == 0) return;
  if (!fs::is_regular_file(flags.output, ignored))
    throw InputError(flags.output, 0, "is not a file that can be replaced");
  std::array<char, 9> begin{};
  std::ifstream(flags.output, std::ios::binary).read(begin.data(), begin.size());
  if (lower_case(std::string_view(begin.data(), begin.size())) != "<!doctype") {
    throw InputError(flags.output, 0, "exists and is not an HTML page; it is not overwritten");
  }
}

}  // namespace

CLI::App* add_report(CLI::App& app, ReportFlags& flags) {
  CLI::App* verb = app.add_subcommand("report", "Make a page that shows and compares training runs");
  verb->group("Verbs");
  verb->add_option("LOG", flags.logs,
                   "Read these logs of dssync train --log; runs that differ in the seed alone are grouped")
      ->required()
      ->type_name("");
  verb->add_option("-o,--output", flags.output, "Write the page, one HTML file, to FILE (default report.html)")
      ->type_name("FILE");
  add_parsed(
      *verb, "--accuracy", flags.accuracy, [](const std::string& text) { return std::optional(parse_percent(text)); },
      "Compare the training times to this accuracy, such as 88% (default: the highest whole or half percent that all "
      "finished runs reached)")
      ->type_name("PERCENT");
  return verb;
}

void run_report(const ReportFlags& flags) {
  check_output(flags);
  const PatienceNote note("dssync report: reading ...");
  std::vector<TrainingRun> runs;
  for (const std::string& log : flags.logs) {
    runs.push_back(read_run(fs::path(log)));
    if (runs.back().torn)
      fmt::print(stderr, "dssync report: note: {}: the last line is incomplete and was left out\n", printable(log));
  }
  const std::string page = make_report(runs, {.accuracy = flags.accuracy});
  write_durably(flags.output, {page}, "the report");
  write_result(comparison_as_text(compare(runs, flags.accuracy)) +
               fmt::format("{}: {} of {}\n", printable(flags.output), counted(runs.size(), "run"),
                           counted(flags.logs.size(), "log")));
}

}  // namespace dssync::cli
