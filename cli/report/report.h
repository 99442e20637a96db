// The verb `report`: makes a page of training logs. Used by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dssync::cli {

struct ReportFlags {
  std::vector<std::string> logs;
  std::string output = "report.html";
  std::optional<double> accuracy;  // 0 to 1
};

// Declares the verb and its flags; parsing fills `flags`. A bad value throws InputError.
CLI::App* add_report(CLI::App& app, ReportFlags& flags);

// Throws InputError for a file that is no log or an output that is no page, Error where the page cannot be written.
void run_report(const ReportFlags& flags);

}  // namespace dssync::cli
