#include "dssync/base/durable_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync {
namespace {

namespace fs = std::filesystem;

// A file that is closed on all paths, and whose failures are named.
class OpenFile {
 public:
  OpenFile(const fs::path& file, int flags, std::string failure)
      : failure_(std::move(failure)), handle_(open(file.c_str(), flags | O_CLOEXEC, 0666)) {
    if (handle_ < 0) fail();
  }
  ~OpenFile() {
    if (handle_ >= 0) ::close(handle_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(handle_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) fail();
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void flush() {
    // Devices and some file systems have nothing to flush.
    if (fsync(handle_) != 0 && errno != EINVAL && errno != EROFS) fail();
  }

  // Some file systems report a full disk only here.
  void close() {
    const int closed = ::close(handle_);
    handle_ = -1;
    if (closed != 0) fail();
  }

  [[noreturn]] void fail() const { throw Error(fmt::format("{} ({})", failure_, std::strerror(errno))); }

 private:
  std::string failure_;
  int handle_;
};

}  // namespace

void write_durably(const fs::path& file, const std::vector<std::string_view>& parts, const std::string& what) {
  const std::string failure = fmt::format("{}: {} cannot be written", file.string(), what);
  const fs::path temporary = file.string() + ".tmp";
  try {
    OpenFile output(temporary, O_WRONLY | O_CREAT | O_TRUNC, failure);
    for (const std::string_view part : parts) output.write(part);
    output.flush();
    output.close();
    if (std::rename(temporary.c_str(), file.c_str()) != 0) output.fail();
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  // Without this, a power cut may undo the renaming.
  OpenFile(file.has_parent_path() ? file.parent_path() : ".", O_RDONLY | O_DIRECTORY, failure).flush();
}

}  // namespace dssync
