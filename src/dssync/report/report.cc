#include "dssync/report/report.h"

#include <string_view>

#include <fmt/format.h>

#include "dssync/base/version.h"
#include "dssync/report/comparison.h"
#include "dssync/report/sections.h"

namespace dssync {
namespace {

// Nothing is ever loaded from elsewhere, even if a log tried to make the page do so.
constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>dssync training report</title>
<link rel="icon" href="data:,">
)";

constexpr std::string_view kContents =
    R"(<nav aria-label="Contents"><a href="#summary">Summary</a><a href="#accuracy">Accuracy</a><a href="#time">Time</a><a href="#disagreement">Disagreement</a><a href="#links">Links</a><a href="#network">Network</a><a href="#runs">Runs</a></nav>
)";

}  // namespace

std::string make_report(const std::vector<TrainingRun>& runs, const ReportOptions& options) {
  const Comparison comparison = compare(runs, options.accuracy);
  std::string page(kHead);
  page += "<style>\n" + page_style() + "</style>\n</head>\n<body>\n<main>\n";
  page += header_section(comparison);
  page += kContents;
  page += summary_section(comparison) + accuracy_section(comparison) + time_section(comparison) +
          disagreement_section(comparison) + links_section(comparison) + network_section(comparison) +
          runs_section(comparison);
  page += fmt::format("</main>\n<footer>Made by dssync {} from {} log{}.</footer>\n", kVersion, runs.size(),
                      runs.size() == 1 ? "" : "s");
  page += "<script>\n" + page_script() + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace dssync
