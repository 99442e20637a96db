#include "terminal/output.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "dssync/base/error.h"

namespace dssync::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool wants_color(const std::string& color) {
  if (color != "auto") return color == "always";
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
  return isatty(STDOUT_FILENO) == 1 && !is_set("NO_COLOR") && !is_dumb;
}

}  // namespace

void write_result(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

void check_writable(const char* flag, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  if (file.empty()) return;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code unknown;
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("{}: {} cannot be written: {} {}", flag, file.string(), folder.string(), why));
  };
  if (!fs::is_directory(folder, unknown)) refuse("is not a folder");
  if (fs::is_directory(file, unknown)) throw InputError(fmt::format("{}: {} is a folder", flag, file.string()));
  if (access(folder.c_str(), W_OK) != 0) refuse(fmt::format("may not be written to ({})", std::strerror(errno)));
}

Style style_of_output(const std::string& color) { return {.utf8 = locale_is_utf8(), .color = wants_color(color)}; }

int complain(const std::string& speaker, const std::string& message, int status) {
  fmt::print(stderr, "{}: {}\n", speaker, printable(message));
  return status;
}

PatienceNote::PatienceNote(std::string text) {
  if (isatty(STDERR_FILENO) != 1) return;
  thread_ = std::jthread([said = std::move(text)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    const bool in_time = ended.wait_for(lock, stop, std::chrono::seconds(2), [&] { return stop.stop_requested(); });
    if (!in_time) fmt::print(stderr, "{}\n", said);
  });
}

}  // namespace dssync::cli
