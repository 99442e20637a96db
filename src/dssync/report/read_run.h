// Reads logs of `dssync train` (dssync/training/log/run_log.h), line by line. Events and keys that this version does
// not know are passed over; logs of older versions, which lack some, are read as well. Thread-safe.
#pragma once

#include <filesystem>
#include <istream>
#include <string>

#include "dssync/report/run.h"

namespace dssync {

// Throws InputError that names the file and the line where the file cannot be read, is not such a log, or has a line
// that is not a JSON object. A last line without its line end is what a killed run leaves: it is left out where it is
// incomplete.
TrainingRun read_run(const std::filesystem::path& file);

// The same of any stream; `name` stands for the file.
TrainingRun read_run(std::istream& input, const std::string& name);

}  // namespace dssync
