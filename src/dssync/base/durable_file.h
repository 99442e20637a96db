// Files that are there whole or not at all, even after a crash or a power cut. Thread-safe for different files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dssync {

// The parts, one after another: under a temporary name beside it (".tmp" is appended), flushed to the disk, renamed.
// `what` names the file in messages ("the trace"). Throws Error that names the file and the cause; then nothing of it
// is left, and a file that had the name before is untouched.
void write_durably(const std::filesystem::path& file, const std::vector<std::string_view>& parts,
                   const std::string& what);

}  // namespace dssync
