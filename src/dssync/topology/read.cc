// Loads a file and picks its reader.
#include "dssync/topology/read.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "dssync/base/error.h"
#include "dssync/base/text.h"
#include "dssync/topology/text_check.h"

namespace dssync {
namespace {

// Reads one byte more than a topology may have, so that checked_text sees what is too large without all of it being
// loaded.
std::string load(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw InputError(file.string(), 0, "this is a directory; expected a topology file");
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && stream.fail()) {
    const int reason = errno != 0 ? errno : EIO;
    throw InputError(file.string(), 0,
                     "cannot be read (" + std::generic_category().message(reason) + "); expected a topology file");
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

// The first line that is more than blank or a comment.
std::string_view first_meaningful_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') return line;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

bool is_slurm(const std::filesystem::path& file, std::string_view text) {
  const std::string extension = lower_case(file.extension().string());
  if (extension == ".yaml" || extension == ".yml") return false;
  if (extension == ".conf") return true;
  const std::string_view line = first_meaningful_line(text);
  const std::string_view word = line.substr(0, line.find_first_of("= \t"));
  return lower_case(word) == "switchname" || lower_case(word) == "include";
}

}  // namespace

ReadResult read_topology(const std::filesystem::path& file, const Assumptions& assumptions) {
  if (file.empty()) {
    throw InputError("the name of the topology file is empty; expected a path");
  }
  const std::string source = file.string();
  const std::string loaded = load(file);
  const std::string_view text = checked_text(loaded, source);
  return is_slurm(file, text) ? read_slurm_topology(text, source, assumptions)
                              : read_yaml_topology(text, source, assumptions);
}

}  // namespace dssync
