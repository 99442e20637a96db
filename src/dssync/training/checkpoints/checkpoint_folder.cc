#include "dssync/training/checkpoints/checkpoint_folder.h"

#include <fstream>
#include <regex>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dssync/base/durable_file.h"
#include "dssync/base/error.h"
#include "dssync/base/text.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;

bool is_checkpoint_name(const std::string& name) {
  static const std::regex pattern("iteration-[0-9]{8,}-[0-9a-f]{8}");
  return std::regex_match(name, pattern);
}

// Does not throw: other workers may be removing things at the same time.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  while (!failure && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(failure);
  }
  return names;
}

}  // namespace

CheckpointFolder::CheckpointFolder(fs::path folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

std::string CheckpointFolder::name_for(std::int64_t iteration, std::uint64_t run) {
  return fmt::format("iteration-{:08}-{:08x}", iteration, run & 0xffffffff);
}

std::string CheckpointFolder::latest() const {
  const fs::path file = folder_ / "latest";
  std::error_code unknown;
  if (!fs::exists(file, unknown)) return "";
  std::ifstream stream(file);
  std::string name;
  if (!std::getline(stream, name)) throw Error(fmt::format("{}: cannot be read or is empty", file.string()));
  if (!is_checkpoint_name(name)) {
    throw Error(fmt::format("{}: names no checkpoint: {}", file.string(), quote(name)));
  }
  return name;
}

fs::path CheckpointFolder::file_of(const std::string& name) const {
  return path_of(name) / fmt::format("rank-{}.ckpt", rank_);
}

std::int64_t CheckpointFolder::save(const Checkpoint& checkpoint) const {
  const fs::path folder = path_of(checkpoint.name);
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    throw Error(
        fmt::format("{}: the checkpoint of rank {} cannot be written ({})", folder.string(), rank_, failure.message()));
  }
  try {
    return write_checkpoint(file_of(checkpoint.name), checkpoint);
  } catch (...) {
    fs::remove(folder, failure);  // if it is empty
    throw;
  }
}

void CheckpointFolder::publish(const std::string& name) const {
  write_durably(folder_ / "latest", {name, "\n"}, "the name of the latest checkpoint");
}

void CheckpointFolder::keep_only(const std::string& newest, const std::string& previous) const {
  std::error_code ignored;
  for (const std::string& name : names_in(folder_)) {
    if (!is_checkpoint_name(name) || name == newest || name == previous) continue;
    if (rank_ == 0) {
      fs::remove_all(path_of(name), ignored);
    } else {
      // Until rank 0 has published, only what this worker wrote is its to remove.
      fs::remove(file_of(name), ignored);
      fs::remove(path_of(name), ignored);
    }
  }
}

}  // namespace dssync
