#include "terminal/live_line.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace dssync::cli {
namespace {

constexpr const char* kErase = "\r\x1b[K";

bool standard_error_rewrites() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

std::size_t standard_error_columns() {
  winsize size{};
  constexpr std::size_t kUsual = 80;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

// In one piece, so that what other processes write does not fall in between.
void write_standard_error(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

LiveLine::LiveLine(Screen screen, Clock::time_point now)
    : screen_(std::move(screen)), next_(screen_.rewrites ? now : now + kPlainEvery) {}

void LiveLine::show(const std::string& text, Clock::time_point now) {
  next_ = now + (screen_.rewrites ? kEvery : kPlainEvery);
  if (!screen_.rewrites) {
    screen_.write(text + "\n");
    return;
  }
  const std::size_t columns = screen_.columns();
  shown_ = clip(text, columns > 1 ? columns - 1 : 1, screen_.style);  // the last column would wrap
  screen_.write(kErase + shown_);
}

void LiveLine::note(const std::string& text) {
  screen_.write(fmt::format("{}{}\n{}", shown_.empty() ? "" : kErase, text, shown_));
}

void LiveLine::clear() {
  if (!shown_.empty()) screen_.write(kErase);
  shown_.clear();
}

LiveLine::Screen standard_error_screen() {
  return {.rewrites = standard_error_rewrites(),
          .columns = standard_error_columns,
          .write = write_standard_error,
          .style = {.utf8 = locale_is_utf8(), .color = false}};
}

void clear_standard_error_line() {
  if (standard_error_rewrites()) write_standard_error(kErase);
}

}  // namespace dssync::cli
