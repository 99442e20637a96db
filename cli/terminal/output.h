// Where results go: standard output, with errors noticed; and what a verb says on standard error while it works.
#pragma once

#include <filesystem>
#include <string>
#include <thread>

#include "text/style.h"

namespace dssync::cli {

// Throws Error where the text could not be written in full (a closed pipe, a full disk).
void write_result(const std::string& text);

// What of a file that a flag names can be known to be wrong before it is written: throws InputError where its folder is
// none or may not be written to, or the file is a folder. An empty name is fine.
void check_writable(const char* flag, const std::filesystem::path& file);

// `color`: "always", "never", or "auto" (only on a terminal, and not where NO_COLOR is set).
Style style_of_output(const std::string& color);

// "SPEAKER: MESSAGE" on standard error, on one line. Returns `status`.
int complain(const std::string& speaker, const std::string& message, int status);

// Says `text` on standard error if it still exists after two seconds and somebody is watching.
class PatienceNote {
 public:
  explicit PatienceNote(std::string text);

 private:
  std::jthread thread_;  // joined at the end of the note's life
};

}  // namespace dssync::cli
